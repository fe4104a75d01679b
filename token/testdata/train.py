"""Trains vocabularies of kinds that no package contains: train.py OUT TOKENIZER_JSON BERT_VOCAB."""
import base64
import glob
import io
import json
import os
import random
import sys

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

out, source, bert_vocab = sys.argv[1:]
os.makedirs(out, exist_ok=True)
random.seed(1)

# Words of many languages from a large vocabulary, and prose from the standard library.
words = [t.replace("▁", " ").strip() for t in json.load(open(source))["model"]["vocab"]]
words = [w for w in words if w and len(w) < 20]
lines = [" ".join(random.choices(words, k=12)) for _ in range(30000)]
for path in sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py"))[:80]:
    lines += [line.strip() for line in open(path, encoding="utf-8", errors="ignore") if line.strip()]


def save(name, tokenizer):
    tokenizer.save(f"{out}/{name}.json")


def piece_model(name, **options):
    stream = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=stream, minloglevel=2, **options)
    open(f"{out}/{name}.model", "wb").write(stream.getvalue())
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(stream.getvalue())
    return proto


user = ["<user>", "ab cd", "▁▁"]
proto = piece_model("sp_unigram", vocab_size=6000, model_type="unigram", character_coverage=0.98)
piece_model("sp_unigram_bytes", vocab_size=6000, model_type="unigram", byte_fallback=True, normalization_rule_name="nfkc_cf",
            user_defined_symbols=user, character_coverage=0.98)
piece_model("sp_unigram_suffix", vocab_size=4000, model_type="unigram", treat_whitespace_as_suffix=True, character_coverage=0.98)
piece_model("sp_bpe", vocab_size=6000, model_type="bpe", character_coverage=0.98)
piece_model("sp_bpe_llama", vocab_size=6000, model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
            remove_extra_whitespaces=False, split_digits=True, character_coverage=0.98)
piece_model("sp_bpe_user", vocab_size=6000, model_type="bpe", byte_fallback=True, normalization_rule_name="nfkc",
            remove_extra_whitespaces=False, add_dummy_prefix=False, user_defined_symbols=user, character_coverage=0.98)

# T5: Unigram with the character map of SentencePiece.
pieces = [(p.piece, p.score) for p in proto.pieces]
t5 = Tokenizer(models.Unigram(pieces, proto.trainer_spec.unk_id, False))
t5.normalizer = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
t5.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
t5.decoder = decoders.Metaspace()
t5.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)])
t5.add_special_tokens(["<unk>", "<s>", "</s>"] + [AddedToken(f"<extra_id_{i}>", lstrip=True) for i in range(5)])
save("t5", t5)

# XLM-R in the format of newer files.
xlmr = Tokenizer(models.Unigram(pieces, proto.trainer_spec.unk_id, False))
xlmr.normalizer = normalizers.Sequence([normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap), normalizers.Strip(),
                                        normalizers.Replace(Regex(" {2,}"), "▁")])
xlmr.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
xlmr.decoder = decoders.Metaspace()
xlmr.add_special_tokens(["<s>", AddedToken("<mask>", lstrip=True)])
save("xlmr", xlmr)

# Unigram with byte fallback over unsplit text.
bytes_model = Tokenizer(models.Unigram(pieces + [(f"<0x{b:02X}>", -20.0) for b in range(256)], 0, True))
bytes_model.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Nmt()])
bytes_model.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
bytes_model.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
bytes_model.add_special_tokens(["<s>", "</s>"])
save("unigram_bytes", bytes_model)


# The vocabulary of BERT itself, uncased.
vocab = json.load(open(bert_vocab))
if not isinstance(vocab, dict):
    vocab = {word: i for i, word in enumerate(vocab)}
real = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
real.normalizer = normalizers.BertNormalizer()
real.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
real.decoder = decoders.WordPiece()
real.post_processor = processors.BertProcessing(("[SEP]", vocab["[SEP]"]), ("[CLS]", vocab["[CLS]"]))
real.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
save("bert", real)


def bert(name, lowercase, strip_accents):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=8000, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    save(name, t)


bert("bert_uncased", True, None)
bert("bert_cased", False, False)

# CLIP: symbols at the end of a word are marked.
clip = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"))
clip.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
clip.pre_tokenizer = pre_tokenizers.Sequence([
    pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
clip.decoder = decoders.BPEDecoder("</w>")
clip.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=5000, end_of_word_suffix="</w>", special_tokens=["<|endoftext|>"],
                                                   initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
save("clip", clip)

# A continuing prefix, unknown characters, no byte fallback.
prefixed = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=True))
prefixed.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
prefixed.pre_tokenizer = pre_tokenizers.Whitespace()
prefixed.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=4000, limit_alphabet=300, continuing_subword_prefix="##",
                                                       special_tokens=["<unk>"]))
save("bpe_prefix", prefixed)

unfused = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
unfused.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Punctuation("contiguous"),
                                                 pre_tokenizers.CharDelimiterSplit("e")])
unfused.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=3000, limit_alphabet=200, special_tokens=["<unk>"]))
save("bpe_unfused", unfused)

roberta = Tokenizer(models.BPE())
roberta.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
roberta.decoder = decoders.ByteLevel()
roberta.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=4000, special_tokens=["<s>", "</s>"],
                                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
roberta.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
# Every flag an added token can have.
roberta.add_tokens([AddedToken("def", single_word=True), AddedToken("import", lstrip=True, rstrip=True, normalized=False),
                    AddedToken("the", normalized=True, rstrip=True), AddedToken("then", normalized=True), AddedToken("  "),
                    AddedToken("<x>", special=True, lstrip=True), AddedToken("\n\n", normalized=False)])
save("roberta_added", roberta)

level = Tokenizer(models.WordLevel(unk_token="<unk>"))
level.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.NFKD(), normalizers.Prepend("x")])
level.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_next")])
level.train_from_iterator(lines, trainers.WordLevelTrainer(vocab_size=5000, special_tokens=["<unk>"]))
level.add_tokens([AddedToken("Self", normalized=True)])
save("wordlevel", level)

merged = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30))
merged.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(" ", "merged_with_previous"), pre_tokenizers.Punctuation("removed")])
merged.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=4000, special_tokens=["[UNK]"]))
merged.decoder = decoders.WordPiece(cleanup=False)
save("wordpiece_merged", merged)

# Pre-tokenizers no common model uses, and the decoder of speech recognition models (CTC).
scripts = Tokenizer(models.BPE(unk_token="<unk>"))
scripts.pre_tokenizer = pre_tokenizers.UnicodeScripts()
scripts.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=6000, special_tokens=["<unk>"]))
save("unicode_scripts", scripts)

# One token for each character and each pair of characters, to make every cut visible.
fixed = Tokenizer(models.BPE(unk_token="<unk>"))
fixed.pre_tokenizer = pre_tokenizers.FixedLength(3)
fixed.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=6000, special_tokens=["<unk>"]))
fixed.decoder = decoders.Fuse()
save("fixed_length", fixed)

for cleanup in (True, False):
    letters = {c: i for i, c in enumerate(["<pad>", "<unk>", "|", ".", "'", " 's", " n't", *"abcdefghijklmnopqrstuvwxyz"])}
    ctc = Tokenizer(models.WordLevel(letters, unk_token="<unk>"))
    ctc.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace(" ", "|")])
    ctc.pre_tokenizer = pre_tokenizers.FixedLength(1)
    ctc.decoder = decoders.CTC(pad_token="<pad>", word_delimiter_token="|", cleanup=cleanup)
    ctc.add_special_tokens(["<pad>", "<unk>"])
    ctc.add_tokens([" 's", " n't"])
    save(f"ctc_{cleanup}".lower(), ctc)

# ByteLevel first, then cuts between the byte-level characters.
middle = Tokenizer(models.BPE())
middle.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.Split(Regex("[ĠÃ]"), "isolated"),
                                                pre_tokenizers.Digits(individual_digits=True)])
middle.decoder = decoders.ByteLevel()
middle.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=5000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
save("bytes_first", middle)
