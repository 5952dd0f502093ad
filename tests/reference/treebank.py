"""Goldens of the Treebank tokeniser, from NLTK's tokeniser without its sentence model (nltk 3.10).

    python tests/reference/treebank.py > crates/itm-data/tests/golden/treebank.json
"""

import json
import random

from nltk.tokenize import NLTKWordTokenizer

LINES = """A dog.
It isn't one , is it ?
The men's hats and the dogs' balls
He said "go" and she didn't.
"Go." he said.
(A man.)
[a man (with a hat).]
A man said, "wait..."
at 3:30 , 1,000 people: men,women
50% & #1; me@home $5 a*b
'big' rock 'n roll o'clock
'tis the season , 'twas
they're we've i'll i'm you'd he's can't won't
cannot gonna wanna gimme gotta lemme more'n d'ye
wanna
i cannot, cannot.
t-shirt red/blue long--haired
“a” ‘b’ «c» „d”
a — b–c ‒ ―
u.s. army in the u.s.
``quoted'' and ```more````
a dog's
it's' 's ' ''
{a} <b> <person>
hello!? what?!
e.g. this, i.e. that
a.b.c.
a , , b ,,c :: d
x:y x: y x:5
the '90s and 80's""".splitlines()
PIECES = ["a", "b", "1", " ", "  ", "'", "''", '"', "`", ".", "..", ",", ":", ";", "?", "!", "-", "--", "(", ")", "]", "<",
          "*", "%", "“", "”", "’", "‘", "»", "–", "n't", "'s", "'ll", "cannot", "gonna", "wanna", "more'n", "'t", "_", "\t"]


def main():
    draw = random.Random(0)
    strange = ["".join(draw.choices(PIECES, k=draw.randint(1, 9))) for _ in range(400)]
    tokenize = NLTKWordTokenizer().tokenize
    cases = [{"text": text, "tokens": tokenize(text.strip().lower())} for text in LINES + strange]
    print("[")
    print(",\n".join(json.dumps(case, ensure_ascii=False) for case in cases))
    print("]")


main()
