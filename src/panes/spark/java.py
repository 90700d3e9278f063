"""Is there a Java that Spark can run on?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess

from panes.errors import PanesError

_OLDEST = 17
_HOW = "install it, for example with 'apt-get install openjdk-17-jre-headless' or 'brew install openjdk@17'"


def find_java() -> tuple[int, str]:
    """The version and the place of the Java that Spark will run; an error says what to install."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    needed = f"Spark needs Java {_OLDEST} or newer"
    if java is None or not os.path.exists(java):
        where = f"JAVA_HOME is {home}, which has none" if home else "there is none on the PATH"
        raise PanesError(f"{needed}, and {where}: {_HOW}, and set JAVA_HOME if it is not on the PATH.")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None or int(found[1]) < _OLDEST:
        raise PanesError(f"{needed}, and {java} is {said.splitlines()[0] if said else 'none'}: {_HOW}.")
    return int(found[1]), java
