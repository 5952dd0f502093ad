"""Small vocabularies in the forms of CLIP, SigLIP and BERT, and captions with their numbers.

Part of `clip.py`, which says how to run it. `pieces.json` has, for each caption:

    transformers      CLIPTokenizer, cut to 77         transformers_16   cut to 16
    open_clip         open_clip's SimpleTokenizer, cut to 77, without its padding of zeros; open_clip_16
    siglip            the Unigram pieces of `siglip/tokenizer.json`, end piece, not padded; siglip_8: cut to 8 and padded
    differ            numbers of the captions for which CLIP's two rules give different pieces
    beyond            numbers of those for which open_clip's cleaning is more than `simple_clean` below (repaired encodings)

The numbers of transformers are checked against the algorithm as written here (`plain`), and the Unigram pieces against the best
path over all segmentations.
"""

import gzip
import html
import json
import unicodedata

import ftfy
import regex
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import CLIPTokenizer

START, END = "<|startoftext|>", "<|endoftext|>"
OPEN_CLIP = "<start_of_text>", "<end_of_text>"  # open_clip's names of the same two pieces
CONTEXT = 77
TAUGHT = [
    "a dog runs on the green grass", "two dogs are running in the snow", "a man in an orange hat is looking at something",
    "the man and the woman are standing near the red car", "a woman with a hat is reading", "it's the dog's ball",
    "a small child is playing with a ball in the water",
]
# The captions of the golden batches: the numbers in `clip.safetensors` and `siglip.safetensors`.
BATCH = ["A dog runs.", "the man and the woman", "a hat!"]
CAPTIONS = [
    *BATCH, "", " ", "A MAN IN AN ORANGE HAT", "  two   dogs\tare\n running  ", "24 dogs, 7 men & 1,000 balls", "it's the dog's; they're, I'd, we'll",
    "don't can't dog'S", "naïve café façade", "Ångström Müller straße", "e\u0301te\u0301", "emoji 🐶 dog 👨‍👩‍👧", "日本 の 犬", "Ωμέγα İstanbul",
    "“curly” ‘quotes’ it’s", "&lt;b&gt;dog&lt;/b&gt; &amp;amp; man", "ＦＵＬＬ width", "ﬁne ﬂoor ligature", "\ufeffdog", "zero\u200bwidth\u00adhyphen",
    "a\u00a0dog\u3000runs\u2028away", "cafÃ© dâ€™or", "dash — and… ellipsis", "<|startoftext|> dog <|endoftext|> man", "<|ENDOFTEXT|>", "<end_of_text> dog", "<START_OF_TEXT> dog", "under_score #hash @at $5+3=8%",
    "x²+y² ½", "A.B.C.", "http://a.dog/?q=1&copy=2", "!!! ??? ...", "_", "dog" * 30, " ".join(["dog man hat woman ball"] * 40), "Ⅷ ١٢ dogs", "<html> dog",
]
SPLIT = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def byte_letters():
    """A printable letter for each byte, in the order of the vocabulary."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in own]
    return dict(zip(own + others, [chr(b) for b in own] + [chr(256 + k) for k in range(len(others))]))


LETTERS = byte_letters()


def letters(word):
    coded = [LETTERS[b] for b in word.encode()]
    return (*coded[:-1], coded[-1] + "</w>")


def joined(word, pair):
    out, i = [], 0
    while i < len(word):
        both = word[i : i + 2] == pair
        out.append("".join(pair) if both else word[i])
        i += 2 if both else 1
    return tuple(out)


def train(captions, n):
    words = [letters(w) for c in captions for w in regex.findall(SPLIT, c)]
    merges = []
    for _ in range(n):
        pairs = [pair for w in words for pair in zip(w, w[1:])]
        merges.append(max(sorted(set(pairs)), key=pairs.count))
        words = [joined(w, merges[-1]) for w in words]
    return merges


MERGES = train(TAUGHT, 40)
PIECES = [*LETTERS.values(), *[c + "</w>" for c in LETTERS.values()], *["".join(pair) for pair in MERGES], START, END]
VOCABULARY = {piece: i for i, piece in enumerate(PIECES)}


def cleaned(text):
    """transformers: canonical composition, white space to one space, lower case."""
    return regex.sub(r"\s+", " ", unicodedata.normalize("NFC", text)).lower()


def simple_clean(text):
    """What a reader without ftfy can do of open_clip's cleaning."""
    text = unicodedata.normalize("NFC", html.unescape(html.unescape(text)).replace("\ufeff", ""))
    text = "".join(unicodedata.normalize("NFKC", c) if 0xFB00 <= ord(c) <= 0xFB06 or 0xFF01 <= ord(c) <= 0xFFEE or c == "\u3000" else c for c in text)
    return " ".join(text.translate(str.maketrans("‘’“”", "''\"\"")).split()).lower()


def plain(text):
    """The pieces of a cleaned caption, by the definition of byte-pair encoding."""
    ids = []
    for word in regex.findall(SPLIT, text):
        parts = letters(word)
        while len(parts) > 1:
            pair = min(zip(parts, parts[1:]), key=lambda p: MERGES.index(p) if p in MERGES else 10**9)
            if pair not in MERGES:
                break
            parts = joined(parts, pair)
        ids += [VOCABULARY[p] for p in parts]
    return ids


def around(text, special, clean):
    """The same when the text has special pieces written out, which stay whole; `clean` is done on what lies between."""
    parts = regex.split("(" + "|".join(map(regex.escape, special)) + ")", text)
    written = dict(zip(special, (VOCABULARY[START], VOCABULARY[END])))
    return [i for part in parts for i in ([written[part]] if part in written else plain(clean(part)))]


def cut(ids, n):
    """Start piece, at most n - 2 pieces, end piece."""
    return [VOCABULARY[START], *ids[: n - 2], VOCABULARY[END]]


def clip_tokenizer():
    return CLIPTokenizer(vocab=VOCABULARY, merges=MERGES, model_max_length=CONTEXT)


def open_clip_ids(path):
    from open_clip.tokenizer import SimpleTokenizer

    tokenizer = SimpleTokenizer(bpe_path=str(path))
    assert list(tokenizer.encoder)[:-2] == PIECES[:-2] and len(tokenizer.encoder) == len(PIECES)

    def ids(caption, n):
        row = tokenizer([caption], context_length=n)[0].tolist()
        while row[-1] == 0:  # padding: what comes before it is the end piece
            row.pop()
        return row

    return ids


# SigLIP: pieces with their logarithms. Numbers 0, 1, 2 as in the published file; letters cost more than words.
UNIGRAM = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
UNIGRAM += [(p, -2.0 - 0.125 * i) for i, p in enumerate("▁a ▁dog ▁the ▁man ▁hat ▁and ▁wo man ▁run s ▁runs ▁do g ▁it its ▁ing".split())]
UNIGRAM += [(c, -9.0 - 0.0625 * i) for i, c in enumerate("▁abcdefhijklmnoprtuvwxy")]
SIGNS = "[" + regex.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + "]"
SIGLIP_LENGTH = 8


def siglip_tokenizer():
    tokenizer = Tokenizer(models.Unigram(UNIGRAM, unk_id=2, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Lowercase(), normalizers.Replace(Regex(SIGNS), ""), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip(),
    ])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
    return tokenizer


def best_path(caption):
    """The segmentation with the largest sum of logarithms; an unknown letter costs 10 more than the rarest piece."""
    text = regex.sub(r"\s+", " ", regex.sub(SIGNS, "", caption.lower())).strip()
    ids, scores = [], dict(UNIGRAM[3:])
    number = {p: i for i, (p, _) in enumerate(UNIGRAM)}
    for word in ["▁" + w for w in text.split(" ") if w]:
        best = [(0.0, [])]
        for end in range(1, len(word) + 1):
            ways = [(best[s][0] + scores[word[s:end]], best[s][1] + [number[word[s:end]]]) for s in range(end) if word[s:end] in scores]
            if word[end - 1] not in scores:
                ways.append((best[end - 1][0] + min(s for _, s in UNIGRAM) - 10, best[end - 1][1] + [2]))
            best.append(max(ways))
        # Neighbouring unknown letters are one piece.
        ids += [p for i, p in enumerate(best[-1][1]) if p != 2 or i == 0 or best[-1][1][i - 1] != 2]
    return ids + [1]


def siglip_row(caption):
    ids = siglip_tokenizer().encode(caption).ids
    ids = ids if len(ids) <= SIGLIP_LENGTH else ids[: SIGLIP_LENGTH - 1] + [1]
    return ids, ids + [1] * (SIGLIP_LENGTH - len(ids))


def write_bpe(path, head, end):
    text = "\n".join([head, *[" ".join(pair) for pair in MERGES]]) + end
    path.write_bytes(gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode())


def write_pieces(root):
    clip = root / "clip"
    tokenizer = clip_tokenizer()
    tokenizer.save_pretrained(clip)
    (clip / "vocab.json").write_text(json.dumps(VOCABULARY, ensure_ascii=False) + "\n", encoding="utf-8")
    write_bpe(clip / "merges.txt", "#version: 0.2", "\n")
    write_bpe(root / "bpe.txt.gz", '"bpe_simple_vocab_16e6.txt#version: 0.2', "")
    siglip_tokenizer().save(str(root / "siglip/tokenizer.json"))
    of_open_clip = open_clip_ids(root / "bpe.txt.gz")
    out = {"captions": CAPTIONS, "batch": len(BATCH)}
    for name, n in {"": CONTEXT, "_16": 16}.items():
        out["transformers" + name] = [tokenizer(c, truncation=True, max_length=n)["input_ids"] for c in CAPTIONS]
        out["open_clip" + name] = [of_open_clip(c, n) for c in CAPTIONS]
    out["siglip"] = [siglip_tokenizer().encode(c).ids for c in CAPTIONS]
    out[f"siglip_{SIGLIP_LENGTH}"] = [siglip_row(c)[1] for c in CAPTIONS]
    numbers = range(len(CAPTIONS))
    out["differ"] = [i for i in numbers if out["transformers"][i] != out["open_clip"][i]]
    out["beyond"] = [i for i in numbers if cut(around(simple_clean(CAPTIONS[i]), OPEN_CLIP, str), CONTEXT) != out["open_clip"][i]]
    for i in numbers:
        ours = cut(around(CAPTIONS[i], (START, END), cleaned), CONTEXT)
        if ours != out["transformers"][i]:
            print("transformers departs from the plain algorithm:", repr(CAPTIONS[i]), ours, out["transformers"][i])
        if best_path(CAPTIONS[i]) != out["siglip"][i]:
            print("tokenizers departs from the best path:", repr(CAPTIONS[i]), best_path(CAPTIONS[i]), out["siglip"][i])
    (root / "pieces.json").write_text(json.dumps(out, ensure_ascii=True, indent=0, separators=(",", ":")) + "\n")
    print(f"{len(PIECES)} pieces; the rules differ for", [CAPTIONS[i][:30] for i in out["differ"]])
    print("open_clip's cleaning does more for", [CAPTIONS[i] for i in out["beyond"]])
    print("ftfy alone changes", [(c, ftfy.fix_text(c)) for c in CAPTIONS if ftfy.fix_text(c) != c])
