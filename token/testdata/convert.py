"""Writes a tokenizer.json for Unigram models published as SentencePiece files: convert.py OUT MODEL..."""
import os
import sys

from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

out, paths = sys.argv[1], sys.argv[2:]
for path in paths:
    proto = sentencepiece_model_pb2.ModelProto()
    with open(path, "rb") as f:
        proto.ParseFromString(f.read())
    pieces = [(p.piece, p.score) for p in proto.pieces]
    ids = {p: i for i, (p, _) in enumerate(pieces)}
    albert = "[CLS]" in ids  # ALBERT lowercases
    begin, end = ("[CLS]", "[SEP]") if albert else ("<cls>", "<sep>")
    t = Tokenizer(models.Unigram(pieces, proto.trainer_spec.unk_id, False))
    t.normalizer = normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
        *([normalizers.Lowercase()] if albert else []), normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap),
        normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    t.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}", pair=f"{begin} $A {end} $B {end}", special_tokens=[(begin, ids[begin]), (end, ids[end])])
    t.add_special_tokens([p.piece for p in proto.pieces if p.type in (2, 3)])
    t.add_special_tokens([AddedToken("[MASK]" if albert else "<mask>", lstrip=True)])
    t.save(os.path.join(out, "real_" + ("albert" if albert else "xlnet") + ".json"))
