"""Hands command lines to the argument parser of another tool, without sending anything.

Standard input is a JSON list of command lines (lists of words). Standard output is a JSON
object: `options`, the flags that the parser defines, and `errors`, one text per command
line, empty if the parser accepts it. Modules that are not installed are replaced by stubs:
the tools import torch, transformers and HTTP clients long before they need them.
"""

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import io
import json
import sys
import types


class Stub(type):
    """A class that has every attribute, and that can be called, subscripted and used as a decorator."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(name, (), {"stub": True})

    def __call__(cls, *args, **kwargs):
        if "stub" not in cls.__dict__:  # a class of the tool that inherits from a stub
            return super().__call__(*args, **kwargs)
        if len(args) == 1 and not kwargs and isinstance(args[0], (type, types.FunctionType)):
            return args[0]
        return cls

    def __getitem__(cls, _):
        return cls

    def __or__(cls, _):
        return cls

    __ror__ = __or__


class StubModule(types.ModuleType):
    __path__ = []
    __version__ = "99.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(name, (), {"stub": True})


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules that the tool imports and that are not installed."""

    def __init__(self, tool):
        self.tool = tool

    def find_spec(self, name, path=None, target=None):
        frame = sys._getframe(1)
        while frame.f_globals.get("__name__", "").startswith("importlib"):
            frame = frame.f_back
        importer, parent = frame.f_globals.get("__name__", "").split(".")[0], sys.modules.get(name.rpartition(".")[0])
        if not isinstance(parent, StubModule) and (importer != self.tool or name.split(".")[0] in (self.tool, *sys.stdlib_module_names)):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return StubModule(spec.name)

    def exec_module(self, module):
        pass


def click_options(command):
    return [name for p in command.params for name in [*p.opts, *p.secondary_opts]]


def argparse_options(parser):
    return [name for action in parser._actions for name in action.option_strings]


def sglang():
    # The packages' __init__ load the server. The benchmark needs none of it before it runs.
    for name in ("sglang", "sglang.srt"):
        spec = importlib.machinery.PathFinder.find_spec("sglang")
        package = types.ModuleType(name)
        package.__path__ = [] if name == "sglang.srt" else list(spec.submodule_search_locations)
        sys.modules[name] = package
    for name in ("sglang.srt.disaggregation", "sglang.srt.disaggregation.utils", "sglang.srt.utils", "sglang.srt.utils.network"):
        sys.modules[name] = StubModule(name)
    serving = importlib.import_module("sglang.benchmark.serving")
    seen = []
    parse = serving.ArgumentParser.parse_args

    def parse_args(parser, *args, **kwargs):
        seen[:] = [parser]
        return parse(parser, *args, **kwargs)

    serving.ArgumentParser.parse_args = parse_args
    serving.run_benchmark = lambda args: None

    def check(words):
        sys.argv = ["serving", *words]
        serving.cli_main()

    with contextlib.suppress(SystemExit):
        check([])
    return argparse_options(seen[0]), check


def guidellm_03():
    main = importlib.import_module("guidellm.__main__")
    main.benchmark_with_scenario = nothing
    return click_options(main.benchmark.commands["run"]), click_check(main.benchmark.commands["run"])


def guidellm():
    command = importlib.import_module("guidellm.cli").run
    importlib.import_module("guidellm.entrypoints").benchmark_generative_text = nothing
    return click_options(command), click_check(command)


async def nothing(**_):
    """Takes the place of the benchmark, which the tool starts after it has checked its configuration."""


def click_check(command):
    def check(words):
        with command.make_context("run", list(words)) as ctx:
            command.invoke(ctx)

    return check


def aiperf():
    from aiperf.cli_commands.profile import app

    def check(words):
        _, bound, _ = app.parse_args(list(words), exit_on_error=False, print_error=False)
        from aiperf.config.flags.resolver import resolve_config
        from aiperf.config.loader import build_benchmark_plan

        config = bound.arguments["cli_config"]
        build_benchmark_plan(resolve_config(config, config.config_file))

    names = [name for argument in app.assemble_argument_collection() for name in argument.names]
    return names, check


def genai_bench():
    command = importlib.import_module("genai_bench.cli.cli").benchmark

    def check(words):
        command.make_context("benchmark", list(words)).close()

    return click_options(command), check


def inference_perf():
    import argparse

    cli = importlib.import_module("inference_perf.utils.cli_parser")
    config = importlib.import_module("inference_perf.config")
    parser = argparse.ArgumentParser()
    base = cli.add_global_args(parser)
    cli.add_pydantic_args(parser, config.Config)

    def check(words):
        args = parser.parse_args(words)
        config.read_config(args.config_file, cli.unflatten_dict({k: v for k, v in vars(args).items() if k not in base}))

    return argparse_options(parser), check


TOOLS = {
    "SGLang": (sglang, "sglang"),
    "GuideLLM 0.3": (guidellm_03, "guidellm"),
    "GuideLLM 0.8": (guidellm, "guidellm"),
    "AIPerf": (aiperf, "aiperf"),
    "genai-bench": (genai_bench, "genai_bench"),
    "inference-perf": (inference_perf, "inference_perf"),
}


def error(check, words):
    """Returns what is wrong with a command line, as the tool prints it."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
            check(words)
    except SystemExit as e:
        return printed.getvalue() or f"exit {e.code}"
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return ""


def main():
    start, package = TOOLS[sys.argv[1]]
    lines = json.load(sys.stdin)
    sys.meta_path.append(Stubs(package))
    with contextlib.redirect_stdout(sys.stderr):
        options, check = start()
    json.dump({"options": sorted(set(options)), "errors": [error(check, words) for words in lines]}, sys.stdout)


main()
