# Runs vLLM's benchmark for reference_test.go: one line of JSON in, one out, so that its modules are loaded only once.
import contextlib, io, json, sys, warnings

warnings.simplefilter("ignore")
out, sys.stdout = sys.stdout, sys.stderr

from vllm.benchmarks import serve
from vllm.benchmarks.lib.endpoint_request_func import RequestFuncOutput
from vllm.utils.argparse_utils import FlexibleArgumentParser


def parser():
    p = FlexibleArgumentParser()
    serve.add_cli_args(p)
    return p


def flags(_):
    return [
        dict(names=a.option_strings, default=a.default if isinstance(a.default, (bool, int, str, type(None))) else str(a.default),
             choices=[str(c) for c in a.choices or []], nargs=str(a.nargs))
        for a in parser()._actions
    ]


def bench(ask):
    text = io.StringIO()
    error = ""
    with contextlib.redirect_stdout(text):
        try:
            serve.main(parser().parse_args(ask["args"]))
        except (Exception, SystemExit) as e:
            error = f"{type(e).__name__}: {e}"
    return dict(text=text.getvalue(), error=error)


def metrics(ask):
    """Returns the reference's metrics for the numbers in a detailed result."""
    r, percentiles = ask["result"], ask["percentiles"]
    outputs = []
    for i, error in enumerate(r["errors"]):
        o = RequestFuncOutput(success=not error, error=error, latency=r["latencies"][i], prompt_len=r["input_lens"][i],
                              client_queue_time=r["queue_times"][i])
        if "ttfts" in r:
            o.ttft, o.itl, o.start_time, o.output_tokens = r["ttfts"][i], r["itls"][i], r["start_times"][i], r["output_lens"][i]
        outputs.append(o)
    with contextlib.redirect_stdout(io.StringIO()):
        if "ttfts" in r:
            m, _ = serve.calculate_metrics([], outputs, r["duration"], None, percentiles, ask["goodput"])
        else:
            m = serve.calculate_metrics_for_embeddings(outputs, r["duration"], percentiles)
    return {k: [list(map(float, v)) for v in x] if isinstance(x, list) else float(x) for k, x in vars(m).items()}


out.write("ready\n")
out.flush()
for line in sys.stdin:
    ask = json.loads(line)
    out.write(json.dumps({"flags": flags, "bench": bench, "metrics": metrics}[ask["op"]](ask)) + "\n")
    out.flush()
