"""Samples the datasets of vLLM's benchmark, for the tests that compare tacho with them.

reference_samples.py make DIR CORPUS...   makes tokenizers below DIR: for all bytes or for ASCII only, each with and without a start token
reference_samples.py parquet DIR          makes a Parquet file of every NAME.rows (JSON lines) below DIR
reference_samples.py sample IN OUT        IN is a list of {"name", "words"}; writes the samples of each, or the error, to OUT
"""

import json
import sys
import traceback


def make(folder, corpus):
    from pathlib import Path

    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    chat = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
    lines = [line for path in corpus for line in Path(path).read_text().splitlines() if line.isascii()]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    for name in ("bytes", "bytes-opened", "ascii", "ascii-opened"):
        t = Tokenizer(models.BPE())
        t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        special = ["<|begin|>", "<|end|>", "<|im_start|>", "<|im_end|>"]
        letters = alphabet if name.startswith("bytes") else [c for c in alphabet if c.isascii()]
        t.train_from_iterator(lines, trainers.BpeTrainer(
            vocab_size=6000, initial_alphabet=letters, special_tokens=special, show_progress=False))
        if name.endswith("-opened"):
            t.post_processor = processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", 0)])
        out = Path(folder) / name
        out.mkdir(parents=True)
        t.save(str(out / "tokenizer.json"))
        (out / "config.json").write_text(json.dumps({"model_type": "llama"}))
        (out / "tokenizer_config.json").write_text(json.dumps({
            "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin|>", "eos_token": "<|end|>",
            "chat_template": ("{{ bos_token }}" if name.endswith("-opened") else "") + chat,
            "model_max_length": 1000000, "clean_up_tokenization_spaces": False, "additional_special_tokens": special[2:]}))


def parquet(folder):
    import base64
    from pathlib import Path

    import pyarrow
    import pyarrow.parquet

    def cell(v):
        if isinstance(v, dict):
            return {k: base64.b64decode(x) if k == "bytes" else cell(x) for k, x in v.items()}
        return [cell(x) for x in v] if isinstance(v, list) else v

    for path in Path(folder).rglob("*.rows"):
        rows = [cell(json.loads(line)) for line in path.read_text().splitlines()]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path.with_suffix(".parquet"))
        path.unlink()


def picture(url):
    """Returns the contents of an image's data URL, or else its address."""
    import base64
    import io

    from PIL import Image

    if not url.startswith("data:"):
        return url
    return "image %dx%d" % Image.open(io.BytesIO(base64.b64decode(url.split(",", 1)[1]))).size


def film(url):
    import base64
    import tempfile

    import cv2

    with tempfile.NamedTemporaryFile(suffix=".mp4") as f:
        f.write(base64.b64decode(url.split(",", 1)[1]))
        f.flush()
        c = cv2.VideoCapture(f.name)
        size = tuple(int(c.get(p)) for p in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT, cv2.CAP_PROP_FRAME_COUNT))
        return "video %dx%dx%d" % size


def sound(item):
    import base64
    import io

    import soundfile

    if "audio" in item:
        samples, rate = item["audio"]
        return "audio %.3f" % (len(samples) / rate)
    if "audio_path" in item:
        return "audio %.3f" % soundfile.info(item["audio_path"]).duration
    return "audio %.3f" % soundfile.info(io.BytesIO(base64.b64decode(item["input_audio"]["data"]))).duration


def part(item):
    kind = item.get("type")
    if kind == "text":
        return "text " + item["text"]
    if kind == "image_url":
        return picture(item["image_url"]["url"])
    if kind == "video_url":
        url = item["video_url"]["url"]
        return film(url) if url.startswith("data:") else "video " + url
    return sound(item)


def told(s):
    media = s.multi_modal_data
    if media is None:
        media = []
    elif isinstance(media, dict):
        media = [media]
    prompt, texts = s.prompt, []
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], dict):
        prompt, media = "", prompt
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], str):
        prompt, texts = "", prompt
    return {
        "text": prompt if isinstance(prompt, str) else "", "ids": prompt if isinstance(prompt, list) else None, "texts": texts or None,
        "input": s.prompt_len, "output": s.expected_output_len, "at": s.timestamp, "parts": [part(m) for m in media] or None,
        "messages": s.chat_messages, "extra": s.request_overrides,
    }


def sample(cases, out):
    from vllm.benchmarks.datasets import datasets, get_samples
    from vllm.benchmarks.serve import add_cli_args
    from vllm.tokenizers import get_tokenizer
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    # Some datasets are only known by their hub name: read a local folder instead.
    load, folders = datasets.load_dataset, {}
    datasets.load_dataset = lambda path, **more: load(folders.get(path, path), **more)
    datasets.hf_api = lambda: type("Local", (), {
        "snapshot_download": staticmethod(lambda name, **_: folders.get(name, name)),
        "hf_hub_download": staticmethod(lambda name, file, **_: folders.get(name, name) + "/" + file)})
    parser = FlexibleArgumentParser()
    add_cli_args(parser)
    results = {}
    for case in cases:
        try:
            args = parser.parse_args(case["words"])
            folders.clear()
            folders.update(case.get("folders") or {})
            results[case["name"]] = {"samples": [told(s) for s in get_samples(args, get_tokenizer(args.tokenizer))]}
        except Exception:
            results[case["name"]] = {"error": traceback.format_exc()}
    choices = {a.option_strings[0]: a.choices for a in parser._actions if a.option_strings}
    json.dump({"results": results, "datasets": choices["--dataset-name"]}, open(out, "w"))


if sys.argv[1] == "make":
    make(sys.argv[2], sys.argv[3:])
elif sys.argv[1] == "parquet":
    parquet(sys.argv[2])
else:
    sample(json.load(open(sys.argv[2])), sys.argv[3])
