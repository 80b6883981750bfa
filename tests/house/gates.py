#!/usr/bin/env python3
"""The numbers that hold the weight of the repository: each is at most its gate in gates.txt.

  tests/house/gates.py                       compares the numbers with their gates
  tests/house/gates.py --numbers             prints the numbers in the form of gates.txt
  tests/house/gates.py --list NAME [PATH]... shows what a number counts, in these paths alone if given
  tests/house/gates.py --lower               lowers the gates that are higher than needed

--root ROOT is another repository, --build BUILD another build folder than ROOT/build. Of the build
folder are read generated/floors.txt (tests/house/house.cmake) and libannulus.so.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import prose  # noqa: E402

# Files whose lines count as code. Files without a suffix count if they are scripts.
CODE_SUFFIXES = {'.h', '.cc', '.c', '.cu', '.cuh', '.def', '.cmake', '.in', '.py'}


# Gates of numbers that are not always compared on this machine: the size of the library with
# another compiler, and numbers that tools/test measures.
ELSEWHERE = ('text_bytes/', 'processor_seconds/')


class Number:
    """`what` is counted, and `places` shows what was found. With a `step` above 1 a gate is a
    multiple of it and at least half a step above the number, so that few small changes meet it."""

    def __init__(self, what, value, places=(), step=1):
        self.what, self.value, self.places, self.step = what, value, list(places), step

    @property
    def needed(self):
        """The gate that this number needs."""
        return -(-(self.value + self.step // 2) // self.step) * self.step


def files_of(root):
    """All files but those that .gitignore names, which are folders of the root."""
    ignored = {'.git'}
    if (root / '.gitignore').is_file():
        ignored |= {line.strip('/') for line in (root / '.gitignore').read_text().split()}
    for top in sorted(root.iterdir()):
        if top.name in ignored:
            continue
        for path in [top] if top.is_file() else sorted(top.rglob('*')):
            if path.is_file() and '__pycache__' not in path.parts:
                yield path.relative_to(root).as_posix()


def lines_of(root, file):
    """The lines of a file of code, or None for any other file."""
    path = root / file
    is_script = path.suffix == '' and path.name[0] != '.'
    if not is_script and path.suffix not in CODE_SUFFIXES and path.name != 'CMakeLists.txt':
        return None
    data = path.read_bytes()
    return None if is_script and not data.startswith(b'#!') else data.count(b'\n')


def group_of(file, rooms):
    """The group whose lines a file adds to: its room; else its folder in tests or tools; else the
    folder of the root."""
    folders = file.split('/')[:-1]
    for depth in range(len(folders), 0, -1):
        if '/'.join(folders[:depth]) in rooms:
            return '/'.join(folders[:depth])
    if folders[:2] == ['tools', 'simulator']:
        return '/'.join(folders[:3])
    return '/'.join(folders[:2 if folders[:1] in (['tests'], ['tools']) else 1]) or '.'


def fuzzed(root):
    """The C functions of the interface that no fuzz target calls, and how many there are in all."""
    listed = root / 'tests/house/symbols.txt'
    names = re.findall(r'^annulus_\w+$', listed.read_text(), re.M) if listed.is_file() else []
    words = set()
    for path in (root / 'tests/fuzz').rglob('*'):
        if path.suffix in ('.cc', '.h'):
            words |= set(re.findall(r'\bannulus_\w+', path.read_text(encoding='utf-8')))
    return [name for name in names if name not in words], len(names)


def text_bytes(build):
    """The name of the number for this build, and its value; None without a library or `size`."""
    described = build / 'generated/gates_build.txt'
    if not described.is_file():
        return None
    toolchain, library = described.read_text().split('\n')[:2]
    try:
        printed = subprocess.run(['size', '-A', '-d', library], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r'^\.text\s+(\d+)', printed.stdout, re.M)
    return f'text_bytes/{toolchain}', int(found.group(1))


def numbers(root, build):
    """Every number of the repository: name -> Number."""
    rooms = set()
    for line in (build / 'generated/floors.txt').read_text().split():
        folder = line.split('|')[1]
        if folder:
            rooms.add(Path(folder).relative_to(root).as_posix())
    files = list(files_of(root))
    made = {'files': Number('files of the repository', len(files), files, step=10)}
    groups = {}
    for file in files:
        lines = lines_of(root, file)
        if lines is not None:
            groups.setdefault(group_of(file, rooms), []).append((lines, file))
    for group, files in sorted(groups.items()):
        shown = [f'{lines:6} {file}' for lines, file in sorted(files, reverse=True)]
        what = f'lines of code in {group}' if group != '.' else 'lines of code in the root folder'
        made[f'lines/{group}'] = Number(what, sum(lines for lines, _ in files), shown, step=100)

    words = []
    for path in sorted((root / 'docs').glob('*.md')) + sorted((root / 'tools/simulator/docs').glob('*.md')):
        words.append((len(path.read_text(encoding='utf-8').split()), path.relative_to(root).as_posix()))
    made['words/docs'] = Number('words of the documents in docs and tools/simulator/docs', sum(count for count, _ in words),
                                [f'{count:6} {name}' for count, name in sorted(words, reverse=True)], step=500)
    for name in ('README.md', 'CONTRIBUTING.md'):
        if (root / name).is_file():
            count = len((root / name).read_text(encoding='utf-8').split())
            made[f'words/{name}'] = Number(f'words of {name}', count, step=100)

    headers = sorted(path.name for path in (root / 'include').rglob('*.h'))
    made['headers'] = Number('public headers', len(headers), headers)
    if (root / 'tests/house/symbols.txt').is_file():
        symbols = (root / 'tests/house/symbols.txt').read_text().splitlines()
        made['functions'] = Number('functions that libannulus.so exports', len(symbols), symbols)
        missing, count = fuzzed(root)
        made['not_fuzzed'] = Number(f'functions of the C interface, of {count}, that no file of tests/fuzz calls',
                                    len(missing), missing)
    for (rule, part), found in prose.places(root).items():
        shown = [f'{file}:{line}: {words}' for file, line, words in found]
        made[f'prose/{rule}/{part}'] = Number(f'in {part}: {prose.RULES[rule].what}', len(found), shown)
    measured = text_bytes(build)
    if measured:
        name, value = measured
        made[name] = Number('bytes of .text in libannulus.so', value, step=16384)
    return made


GATE = re.compile(r'^(\S+)\s+(\d+)(?:\s+(\S.*))?$')


def read_gates(file):
    """name -> gate. Exits with a message for a line that is neither a gate nor a comment."""
    gates = {}
    for number, line in enumerate(file.read_text().split('\n'), 1):
        if not line.strip() or line.startswith('#'):
            continue
        found = GATE.match(line)
        if not found or found.group(1) in gates:
            sys.exit(f'{file}:{number}: expected "NAME NUMBER REASON", each name once, and found: {line}')
        gates[found.group(1)] = int(found.group(2))
    return gates


def compare(found, gates):
    """Prints what is above its gate, without a gate or without a number. True if nothing is."""
    wrong = []
    for name, number in found.items():
        if name.startswith('text_bytes/') and name not in gates:
            others = ', '.join(gate.split('/', 1)[1] for gate in gates if gate.startswith('text_bytes/'))
            print(f'{name} is not compared: gates.txt has one for {others or "no build"}')
        elif name not in gates:
            wrong.append(f'{name} is {number.value} and has no gate ({number.what}). Add this line to gates.txt:\n'
                         f'    {name} {number.needed}')
        elif number.value > gates[name]:
            if name.startswith('prose/'):
                cure = ('Write the new places anew. A rule that finds good sentences is cut narrower in '
                        'tests/house/prose.py.')
            else:
                cure = ('Take out what is not needed. If all of it is, write in tests/house/gates.txt:\n'
                        f'    {name} {number.needed} THE REASON')
            wrong.append(f'{name} is {number.value}, and its gate is {gates[name]} ({number.what}).\n'
                         f'    tests/house/gates.py --list {name}    shows what is counted.\n    {cure}')
        elif number.needed < gates[name]:
            print(f'{name} is {number.value}: its gate of {gates[name]} may be lowered to {number.needed}'
                  ' (tests/house/gates.py --lower)')
    for name in gates:
        if name not in found and not name.startswith(ELSEWHERE):
            wrong.append(f'{name} has a gate, and there is nothing that it counts. Remove its line from gates.txt.')
    if not any(name.startswith('text_bytes/') for name in found):
        print('text_bytes is not compared: the build folder has no library, or the machine has no program size')
    for text in wrong:
        print(text)
    return not wrong


def lower(file, found):
    """Writes the gates again, each at most what its number needs. A lowered gate loses its reason."""
    lines = file.read_text().split('\n')
    for i, line in enumerate(lines):
        gate = GATE.match(line) if not line.startswith('#') else None
        if gate and gate.group(1) in found and found[gate.group(1)].needed < int(gate.group(2)):
            lines[i] = f'{gate.group(1)} {found[gate.group(1)].needed}'
            print(f'{line} -> {found[gate.group(1)].needed}')
    file.write_text('\n'.join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--root', type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument('--build', type=Path)
    parser.add_argument('--numbers', action='store_true')
    parser.add_argument('--lower', action='store_true')
    parser.add_argument('--list', metavar='NAME')
    parser.add_argument('paths', nargs='*')
    options = parser.parse_args()
    build = options.build or options.root / 'build'
    if not (build / 'generated/floors.txt').is_file():
        sys.exit(f'{build}/generated/floors.txt is missing: configure this build folder first, or name one with --build')
    found = numbers(options.root, build)
    file = options.root / 'tests/house/gates.txt'
    if options.numbers:
        for name, number in found.items():
            print(name, number.needed)
    elif options.list:
        named = [number for name, number in found.items() if name == options.list or
                 name.startswith(options.list + '/')]
        if not named:
            sys.exit(f'there is no number {options.list}; the numbers are:\n' + '\n'.join(found))
        for number in named:
            shown = [place for place in number.places
                     if not options.paths or any(path in place for path in options.paths)]
            print(f'# {number.what}: {len(shown)}')
            print('\n'.join(shown))
    elif options.lower:
        lower(file, found)
    elif not compare(found, read_gates(file)):
        sys.exit(1)
    else:
        print(f'{len(found)} numbers compared')


if __name__ == '__main__':
    main()
