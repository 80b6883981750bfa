"""Habits of prose that hide what a sentence means, and where they occur.

Read by gates.py, which holds the count of each rule. A rule is cut so that most of what it finds is
better written otherwise; it still finds good sentences, so that a count need not come to zero.
"""
import bisect
import re

# The comments are the comments of the files in these folders. The documents are DOCUMENTS,
# docs/*.md and tools/simulator/docs/*.md.
CODE = ('src', 'autotune', 'include', 'templates', 'tests', 'tools', 'docs/examples')
DOCUMENTS = ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md')
C_SUFFIXES = ('.h', '.cc', '.c', '.cu', '.cuh', '.def')
HASH_SUFFIXES = ('.cmake', '.py', '.txt', '')
# Error messages are string literals in these folders.
PRODUCT = ('src/', 'autotune/', 'include/', 'tools/program/', 'tools/simulator/src/')
NOT_READ = ('tools/bench/results/',)


class Passage:
    """Text without its line breaks, of a kind: a comment on lines of its own, a trailing comment
    after code, a string literal, or a paragraph of a document."""

    def __init__(self, file, kind):
        self.file, self.kind = file, kind
        self.parts, self.starts, self.lines, self.size = [], [], [], 0

    def add(self, line, text):
        self.starts.append(self.size)
        self.lines.append(line)
        self.parts.append(text)
        self.size += len(text) + 1

    @property
    def text(self):
        return ' '.join(self.parts)

    def line_of(self, offset):
        return self.lines[bisect.bisect_right(self.starts, offset) - 1]


C_TOKEN = re.compile(r'R"([^\s()]*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<![\w])\'(?:[^\'\\\n]|\\.)+\''
                     r'|//[^\n]*|/\*.*?\*/', re.S)


def c_passages(file, text):
    """Comments and string literals of C, C++ and CUDA. Successive lines of // are one passage."""
    starts = [0] + [at.end() for at in re.finditer('\n', text)]
    made, current, last = [], None, (-2, -1)
    for token in C_TOKEN.finditer(text):
        word = token.group()
        line = bisect.bisect_right(starts, token.start())
        if word.startswith('//'):
            column = token.start() - starts[line - 1]
            is_trailing = text[starts[line - 1]:token.start()].strip() != ''
            words = word[2:].strip()
            if not words:
                current = None
                continue
            if is_trailing or current is None or last != (line - 1, column):
                current = Passage(file, 'trailing' if is_trailing else 'comment')
                made.append(current)
            current.add(line, words)
            last = (line, column)
        elif word.startswith('/*'):
            current = Passage(file, 'comment')
            for i, each in enumerate(word[2:-2].split('\n')):
                current.add(line + i, each.strip().lstrip('*').strip())
            made.append(current)
            current = None
        elif word[0] in '"R':
            made.append(Passage(file, 'literal'))
            made[-1].add(line, word)
    return made


HASH = re.compile(r'^(.*?)(?:^|(?<=\s))#(?: |$)(.*)$')


def hash_passages(file, text):
    """Comments of CMake, Python and the shell."""
    made, current, last = [], None, -2
    for number, line in enumerate(text.split('\n'), 1):
        found = HASH.match(line)
        if not found or found.group(1).count('"') % 2 or found.group(1).count("'") % 2:
            current = None
            continue
        is_trailing = found.group(1).strip() != ''
        if not found.group(2).strip():
            current = None
            continue
        if is_trailing or current is None or last != number - 1:
            current = Passage(file, 'trailing' if is_trailing else 'comment')
            made.append(current)
        current.add(number, found.group(2).strip())
        last = number
    return made


def document_passages(file, text):
    """Paragraphs, list items, headings and cells of tables, without code."""
    def blank(found):
        return re.sub(r'[^\n]', ' ', found.group())
    text = re.sub(r'^```.*?^```', blank, text, flags=re.S | re.M)
    text = re.sub(r'<!--.*?-->', blank, text, flags=re.S)
    text = re.sub(r'`[^`\n]+`', '`x`', text)
    text = re.sub(r'\]\([^)\n]*\)', ']', text)
    made, current = [], None
    for number, line in enumerate(text.split('\n'), 1):
        line = line.strip()
        if line.startswith('|'):
            current = None
            for cell in line.strip('|').split('|'):
                if re.search('[A-Za-z]', cell):
                    made.append(Passage(file, 'document'))
                    made[-1].add(number, cell.strip())
            continue
        if not line:
            current = None
            continue
        if current is None or re.match(r'(#+|[-*]|\d+\.) ', line):
            current = Passage(file, 'document')
            made.append(current)
        current.add(number, line)
    return made


def passages(root):
    for folder in CODE:
        for path in sorted((root / folder).rglob('*')):
            name = path.relative_to(root).as_posix()
            if not path.is_file() or name.startswith(NOT_READ):
                continue
            is_c = path.suffix in C_SUFFIXES
            if not is_c and path.suffix not in HASH_SUFFIXES:
                continue
            if path.suffix == '.txt' and path.name != 'CMakeLists.txt':
                continue
            text = path.read_text(encoding='utf-8', errors='replace')
            if path.suffix == '' and not text.startswith('#!'):
                continue
            yield from (c_passages if is_c else hash_passages)(name, text)
    for path in [root / name for name in DOCUMENTS] + sorted((root / 'docs').glob('*.md')) + sorted(
            (root / 'tools/simulator/docs').glob('*.md')):
        if path.is_file():
            yield from document_passages(path.relative_to(root).as_posix(), path.read_text(encoding='utf-8'))


class Rule:
    """`what` the rule finds, and what to write instead. `kinds`: the passages that it reads."""

    def __init__(self, what, pattern, kinds=('comment', 'trailing', 'document'), least=1):
        self.what, self.kinds, self.least = what, kinds, least
        self.pattern = re.compile(pattern)

    def offsets(self, text):
        """Where the rule finds something. With `least` above 1: each sentence that has so many."""
        if self.least == 1:
            return [found.start() for found in self.pattern.finditer(text)]
        offsets = []
        for sentence in SENTENCE.finditer(text):
            found = [each.start() for each in self.pattern.finditer(sentence.group())]
            if len(found) >= self.least:
                offsets.append(sentence.start() + found[0])
        return offsets


SENTENCE = re.compile(r'[^.;:?!]+')
RULES = {
    # Units ("in bytes"), origins ("from 1") and orders ("by rank") are common notes, and are not
    # found.
    'fragment': Rule('a trailing comment that begins with a preposition or a relative word: write a '
                     'noun phrase or a sentence',
                     r'^(of|that|which|whose|what|as|so|behind|with|for|where|when)\b', ('trailing',)),
    'headless': Rule('a comment without a noun at its head ("What ...", "The same ..."): name the thing',
                     r'^(What|Of|As(?! long| soon| far)|The same|Those|That|Also)\b(?![^.]*\?$)', ('comment',)),
    # "where" refers to a place after these words and after a comma, and is not found there.
    'where': Rule('"where" for "if" or "when"',
                  r'(?<!^)(?<!,)(?<!is)(?<!are)(?<!place)(?<!places)(?<!folder)(?<!line)(?<!point)(?<!address)'
                  r'(?<!and)(?<!or)(?<!of)(?<!from)(?<!to)(?<!know)(?<!knows)(?<!says)(?<!show) where\b'),
    'that_of': Rule('"that of", "those of": repeat the noun', r'\b([Tt]hat|[Tt]hose) of\b'),
    # Texts, manuals, messages and comments can say something, and are not found.
    'speech': Rule('speech for the flow of data (tell, ask, say, look at, go on, give back): write what is '
                   'passed, read, compared or released',
                   r'\b(tells?|told|asks?|asked|looks? at|looked at|goes on|go on|gives? back|given back)\b|'
                   r'(?<!ocumentation )(?<!manual )(?<!header )(?<!message )(?<!rror )(?<!rrors )(?<!omment )(?<!omments )'
                   r'(?<!text )(?<!line )(?<!ISA )(?<!` )(?<!\] )\b(says?|said)\b'),
    'behind': Rule('"behind" for "after", "beside" for "with" or "next to"', r'\b([Bb]ehind|[Bb]eside)\b'),
    # "There is no ..." and comparisons ("is no longer") are good sentences, and are not found.
    'is_none': Rule('"is none", "is no (noun)": write "is not a ..."',
                    r'(?<![Tt]here )\b(is|are) (none\b|no (?!more|longer|less|fewer|faster|wider|larger|later|other|matter)[a-z]+)',
                    ('comment', 'trailing', 'document', 'literal')),
    # "as many A as B" is a comparison, and is not found.
    'as_many': Rule('"so many", "as many" without its "as", "also" for "even": write the number or the condition',
                    r'\bso many\b(?! that)|\bas many\b(?!( [^ ]+){0,5} as\b)|\balso (where|if|when|after|in|with|the|what)\b'),
    'whoever': Rule('persons for ranks and threads (nobody, somebody, whoever), and "the own"',
                    r'\b([Nn]obody|[Ss]omebody|[Aa]nybody|[Ww]hoever)\b|\b([Tt]he|an|no) own\b'),
    'at_hand': Rule('"at hand", "by now", "for good", "likewise", "meanwhile", "all the same": write what is meant',
                    r'\b(at hand|by now|for good|[Ll]ikewise|[Mm]eanwhile|all the same)\b'),
    'nested': Rule('three or more of that, which, who, what and where in one sentence: write two sentences',
                   r'\b(that|which|who|what|where)\b', least=3),
}
PARTS = {'comment': 'comments', 'trailing': 'comments', 'document': 'documents', 'literal': 'messages'}


def places(root):
    """The places of each rule: (rule, part) -> [(file, line, words around it)]."""
    found = {}
    for name, rule in RULES.items():
        for part in dict.fromkeys(PARTS[kind] for kind in rule.kinds):
            found[name, part] = []
    for passage in passages(root):
        text = passage.text
        for name, rule in RULES.items():
            if passage.kind not in rule.kinds:
                continue
            if passage.kind == 'literal' and not passage.file.startswith(PRODUCT):
                continue
            for offset in rule.offsets(text):
                around = text[max(0, offset - 40):offset + 60].strip()
                found[name, PARTS[passage.kind]].append((passage.file, passage.line_of(offset), around))
    return found
