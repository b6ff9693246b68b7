"""Writes the requirements.txt of a folder: `python3 xtask/pins.py FOLDER`. Needs uv.

The versions are those of requirements.in, and of the present requirements.txt if there is one: delete it for newer ones.
The digests are of wheels for CPython 3.11 or newer on Linux and macOS, each on aarch64 and x86-64, since only these are installed.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

SYSTEMS = ["sys_platform == 'darwin'", "sys_platform == 'linux'"]
WHEELS = re.compile(r"-(cp3\d+|(py2\.)?py3)-[^-]+-(any|(many|musl)?linux\S*_(aarch64|x86_64)|macosx\S*)\.whl$")


def resolved(declared: pathlib.Path, pinned: pathlib.Path) -> list[dict]:
    """The packages, with all their files. Each has a marker for SYSTEMS."""
    with tempfile.TemporaryDirectory() as folder:
        settings, lock = (pathlib.Path(folder) / name for name in ["pyproject.toml", "pylock.toml"])
        settings.write_text(f"[tool.uv]\nenvironments = {SYSTEMS}\n")
        uv = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", declared, "--output-file", lock]
        constraints = ["--constraint", pinned] if pinned.exists() else []
        subprocess.run([*uv, *constraints], cwd=folder, check=True)
        return tomllib.loads(lock.read_text())["packages"]


def requirement(package: dict) -> str:
    both = " or ".join(SYSTEMS)
    marker = package["marker"].replace(f" and ({both})", "").removesuffix(both)
    line = f"{package['name']}=={package['version']}" + (marker and f" ; {marker}")
    digests = sorted(wheel["hashes"]["sha256"] for wheel in package.get("wheels", []) if WHEELS.search(wheel["url"]))
    if not digests:
        sys.exit(f"{line} has no wheel for these systems: choose another version in requirements.in")
    return " \\\n    ".join([line, *(f"--hash=sha256:{digest}" for digest in digests)])


folder = pathlib.Path(sys.argv[1]).resolve()
pinned = folder / "requirements.txt"
packages = resolved(folder / "requirements.in", pinned)
pinned.write_text("".join(f"{line}\n" for line in ["# Written by xtask/pins.py.", *map(requirement, packages)]))
