# Prints the metrics computed by a tool's own code: dialects.py TOOL < requests.json, run by the Python with the tool.
import contextlib, json, sys, warnings

warnings.simplefilter("ignore")
requests = json.load(sys.stdin)
out, sys.stdout = sys.stdout, sys.stderr


def vllm():
    from vllm.benchmarks import serve
    from vllm.benchmarks.lib.endpoint_request_func import RequestFuncOutput
    outputs = []
    for r in requests:
        at = [e[0] / 1e9 for e in r["events"]]
        outputs.append(RequestFuncOutput(success=True, latency=at[-1] - r["start"] / 1e9, ttft=at[0] - r["start"] / 1e9, prompt_len=r["input"],
                                         itl=[b - a for a, b in zip(at, at[1:])], start_time=r["start"] / 1e9, output_tokens=r["output"]))
    duration = max(r["end"] for r in requests) / 1e9
    m, _ = serve.calculate_metrics([], outputs, duration, None, [99.0], {})
    metrics = {}
    for key in ("ttft", "tpot", "itl", "e2el"):
        metrics[key] = dict(mean=getattr(m, f"mean_{key}_ms"), median=getattr(m, f"median_{key}_ms"), std=getattr(m, f"std_{key}_ms"),
                            p99=getattr(m, f"percentiles_{key}_ms")[0][1])
    return dict(metrics=metrics, totals=dict(request_throughput=m.request_throughput, output_throughput=m.output_throughput,
                                             total_token_throughput=m.total_token_throughput))


def sglang():
    from types import SimpleNamespace
    from sglang.benchmark import serving
    outputs, rows = [], []
    for r in requests:
        o = serving.RequestFuncOutput()
        o.success, o.output_len, o.prompt_len, o.start_time = True, r["output"], r["input"], r["start"] / 1e9
        o.ttft = (r["events"][0][0] - r["start"]) / 1e9
        o.latency = (r["events"][-1][0] - r["start"]) / 1e9
        o.itl = []
        for (a, _), (b, n) in zip(r["events"], r["events"][1:]):
            o.itl.extend([(b - a) / 1e9 / n] * n)  # like its request function for /generate
        outputs.append(o)
        rows.append(SimpleNamespace(prompt_len=r["input"], text_prompt_len=r["input"], vision_prompt_len=0))
    tokenizer = SimpleNamespace(encode=lambda text, add_special_tokens=False: [])
    m, _ = serving.calculate_metrics(rows, outputs, max(r["end"] for r in requests) / 1e9, tokenizer, "sglang")
    metrics = {}
    for key in ("ttft", "tpot", "itl", "e2e_latency"):
        metrics[key] = dict(mean=getattr(m, f"mean_{key}_ms"), median=getattr(m, f"median_{key}_ms"), std=getattr(m, f"std_{key}_ms"),
                            p99=getattr(m, f"p99_{key}_ms"))
    return dict(metrics=metrics, totals=dict(request_throughput=m.request_throughput, output_throughput=m.output_throughput,
                                             total_token_throughput=m.total_throughput, concurrency=m.concurrency))


def aiperf():
    import numpy as np
    from types import SimpleNamespace
    from aiperf.metrics.metric_dicts import MetricRecordDict
    from aiperf.metrics.types.inter_chunk_latency_metric import InterChunkLatencyMetric
    from aiperf.metrics.types.inter_token_latency_metric import InterTokenLatencyMetric
    from aiperf.metrics.types.output_sequence_length_metric import OutputSequenceLengthMetric
    from aiperf.metrics.types.output_token_throughput_metrics import OutputTokenThroughputPerUserMetric
    from aiperf.metrics.types.request_latency_metric import RequestLatencyMetric
    from aiperf.metrics.types.ttft_metric import TTFTMetric
    from aiperf.metrics.types.ttst_metric import TTSTMetric
    order = [TTFTMetric, TTSTMetric, RequestLatencyMetric, InterTokenLatencyMetric, InterChunkLatencyMetric, OutputTokenThroughputPerUserMetric]
    values = {m.tag: [] for m in order}
    for r in requests:
        responses = [SimpleNamespace(perf_ns=at) for at, _ in r["events"]]
        record = SimpleNamespace(start_perf_ns=r["start"], request=SimpleNamespace(start_perf_ns=r["start"]), content_responses=responses,
                                 responses=responses, token_counts=None, valid=True)
        seen = MetricRecordDict()
        seen[OutputSequenceLengthMetric.tag] = r["output"]
        for m in order:
            try:
                seen[m.tag] = m()._parse_record(record, seen)
            except Exception as e:
                if type(e).__name__ != "NoMetricValue":
                    raise
                continue
            v = seen[m.tag]
            values[m.tag].extend(v if isinstance(v, list) else [v])
    metrics = {}
    for tag, v in values.items():
        v = np.array(v, dtype=float)
        if tag != "output_token_throughput_per_user":
            v = v / 1e6
        metrics[tag] = dict(mean=v.mean(), median=np.percentile(v, 50), std=v.std(), p99=np.percentile(v, 99), p90=np.percentile(v, 90))
    span = (max(r["events"][-1][0] for r in requests) - min(r["start"] for r in requests)) / 1e9
    return dict(metrics=metrics, totals=dict(request_throughput=len(requests) / span, output_throughput=sum(r["output"] for r in requests) / span))


def guidellm():
    from guidellm.schemas.base.statistics import DistributionSummary, StatusDistributionSummary
    from guidellm.schemas.base.request_stats import GenerativeRequestStats
    from guidellm.schemas.base.info import RequestInfo, RequestTimings
    from guidellm.schemas.base.request import UsageMetrics
    stats = []
    for i, r in enumerate(requests):
        at = [e[0] / 1e9 for e in r["events"]]
        timings = RequestTimings(targeted_start=r["start"] / 1e9, resolve_start=r["start"] / 1e9, request_start=r["start"] / 1e9, first_token_iteration=at[0],
                                 last_token_iteration=at[-1], token_iterations=len(at), request_iterations=len(at), request_end=r["end"] / 1e9, resolve_end=r["end"] / 1e9)
        info = RequestInfo(request_id=str(i), status="completed", timings=timings)
        stats.append(GenerativeRequestStats(request_id=str(i), info=info, input_metrics=UsageMetrics(text_tokens=r["input"]),
                                            output_metrics=UsageMetrics(text_tokens=r["output"])))
    def of(function):
        d = StatusDistributionSummary.from_values_function(function=function, successful=stats, incomplete=[], errored=[]).successful
        return dict(mean=d.mean, median=d.median, std=d.std_dev, p90=d.percentiles.p90, p99=d.percentiles.p99)
    metrics = {
        "time_to_first_token_ms": of(lambda r: r.time_to_first_token_ms or 0.0),
        "time_per_output_token_ms": of(lambda r: (r.time_per_output_token_ms or 0.0, r.output_tokens or 0.0)),
        "inter_token_latency_ms": of(lambda r: (r.inter_token_latency_ms or 0.0, (r.output_tokens or 1.0) - 1.0)),
        "request_latency": of(lambda r: (r.request_latency or 0.0) * 1000),
    }
    start, end = min(r["start"] for r in requests) / 1e9, max(r["end"] for r in requests) / 1e9
    rate = DistributionSummary.rate_distribution_from_timings([r.request_end_time for r in stats], start_time=start, end_time=end).mean
    return dict(metrics=metrics, totals=dict(request_throughput=rate))


with contextlib.redirect_stdout(sys.stderr):
    answer = dict(vllm=vllm, sglang=sglang, aiperf=aiperf, guidellm=guidellm)[sys.argv[1]]()
json.dump(answer, out, indent=1, default=float)
