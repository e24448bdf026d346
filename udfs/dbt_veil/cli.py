"""The command ``veil``: the keys of a keyring, and the vault of tokens. It never prints a secret."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dbt_veil import __version__
from dbt_veil.keys import Keyring, KeyringError, keyring_from_config, new_keyring, read_keyring, write_keyring
from dbt_veil.tokens import VaultError, new_vault

_ABOUT = """\
The secret keys and the token vault of Veil, the privacy layer for dbt.

  veil key new secrets/veil_keyring.json      make a keyring with one new key
  veil key rotate secrets/veil_keyring.json   add a key that signs from now on
  veil key check secrets/veil_keyring.json    say whether it can be used
  veil vault new secrets/veil_vault.sqlite    make an empty vault for tokens
"""

_COMMANDS = {
    "new": "make a keyring file with one new key; never touches a file that exists",
    "list": "list the keys: id, version, created, state, check value; no secret",
    "rotate": "add a new current key; the one before is retired and still verifies",
    "destroy": "destroy a retired key: what was made with it can never be linked again",
    "check": "say whether the keyring can be used, and if not, what to do",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it worked, 1 when a keyring is at fault, 2 for wrong usage."""
    given = _parser().parse_args(arguments)
    try:
        print(_run(given))
    except (KeyringError, VaultError) as error:
        print(f"veil {given.subject} {given.command}: {error}", file=sys.stderr)
        return 1
    return 0


def _run(given: argparse.Namespace) -> str:
    if given.subject == "vault":
        new_vault(given.file)
        return f"{given.file}: new vault, mode 0600. Back it up apart from the warehouse and from the keyring"
    if given.command in ("list", "check"):
        config = {"keyring_env": given.env} if given.env else {"keyring_file": given.file}
        keyring = keyring_from_config({name: str(value) for name, value in config.items() if value})
        if given.command == "list":
            return _table(keyring)
        return f"ok: key {keyring.current.id} (version {keyring.current.version}) signs, {_verifying(keyring)} verify"
    path: Path = given.file
    if given.command == "new":
        keyring = new_keyring()
        write_keyring(path, keyring, replace_existing=False)
        return (
            f"{path}: new key {keyring.current.id}, version 1, mode 0600\n"
            "Keep a copy where the warehouse's backups are not, and keep the file out of version control."
        )
    before = read_keyring(path)
    if given.command == "rotate":
        keyring = before.rotated()
        write_keyring(path, keyring, replace_existing=True)
        return f"{path}: new key {keyring.current.id}, version {keyring.current.version}, signs from now on"
    if not given.yes:
        raise KeyringError(
            f"version {given.version} would be destroyed for ever, in this file. Say so with `--yes`, and destroy "
            "its copies in backups too"
        )
    write_keyring(path, before.without_secret(given.version), replace_existing=True)
    return f"{path}: key version {given.version} is destroyed. Destroy its copies in backups too"


def _verifying(keyring: Keyring) -> int:
    return len(keyring.usable)


def _table(keyring: Keyring) -> str:
    rows = [("id", "version", "created", "state", "check")]
    for key in keyring.keys:
        check = "-" if key.secret is None else key.subkey("check", "", length=4).hex()
        rows.append((key.id, str(key.version), key.created or "-", key.state, check))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="veil", description=_ABOUT, formatter_class=form)
    parser.add_argument("--version", action="version", version=f"veil {__version__}")
    subjects = parser.add_subparsers(dest="subject", required=True, metavar="{key,vault}")
    key = subjects.add_parser("key", help="the keys of a keyring", description=_ABOUT, formatter_class=form)
    commands = key.add_subparsers(dest="command", required=True, metavar="command")
    for name, text in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if name in ("list", "check"):
            source = command.add_mutually_exclusive_group(required=True)
            source.add_argument("file", nargs="?", type=Path, help="the keyring file")
            source.add_argument("--env", metavar="NAME", help="an environment variable that holds the keyring or a key")
        else:
            command.add_argument("file", type=Path, help="the keyring file")
        if name == "destroy":
            command.add_argument("version", type=int, help="the version of the key to destroy")
            command.add_argument("--yes", action="store_true", help="yes, for ever")
    vault = subjects.add_parser("vault", help="the vault of tokens", description="The vault of tokens.")
    made = vault.add_subparsers(dest="command", required=True, metavar="command")
    text = "make an empty vault; never touches a file that exists"
    new = made.add_parser("new", help=text, description=f"{text[0].upper()}{text[1:]}.")
    new.add_argument("file", type=Path, help="the vault file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
