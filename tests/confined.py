"""Run commands as a user without a name and without root's rights, and with full disks.

`unshare` (util-linux) makes a user namespace: files keep their owner, permission bits apply, and the user's number has
no entry in /etc/passwd. Some systems forbid it, and others lack it; there, `SUPPORTED` is False.
"""

import shutil
import subprocess
from typing import Final

USER: Final = 4242
_AS_USER: Final = ("unshare", "--user", f"--map-user={USER}", f"--map-group={USER}")
_MOUNTING: Final = ("unshare", "--user", "--map-root-user", "--mount")
_FULL: Final = 'mount -t tmpfs -o size=256k none "$0" && { head -c 1m /dev/zero >"$0/filling" 2>&-; exec "$@"; }'


def confined(command, full=None):
    """Return a command that runs another one as such a user."""
    user = [*_AS_USER, *command]
    return user if full is None else [*_MOUNTING, "sh", "-c", _FULL, str(full), *user]


def _is_supported():
    if shutil.which("unshare") is None:
        return False
    mounted = [*_MOUNTING, "sh", "-c", 'mount -t tmpfs none /mnt && exec "$@"', "sh", *_AS_USER, "true"]
    return subprocess.run(mounted, capture_output=True, check=False).returncode == 0


SUPPORTED: Final = _is_supported()
