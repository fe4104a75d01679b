"""Prints verdicts of other programs as JSON lines. The folders of the unpacked wheels are the arguments."""
import importlib.util, json, os, random, re, sys, types

bfcl, lm = sys.argv[1], sys.argv[2]
rng = random.Random(1)


class Anything(dict):
    def __missing__(self, key):
        return types.SimpleNamespace(underscore_to_dot=False)


def stub(name, **members):
    sys.modules[name] = m = types.ModuleType(name)
    m.__dict__.update(members)


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The checker needs only the language and the names of models from the rest of its package.
language = types.SimpleNamespace(PYTHON="python", JAVA="java", JAVASCRIPT="js")
stub("bfcl_eval"), stub("bfcl_eval.constants"), stub("bfcl_eval.eval_checker"), stub("bfcl_eval.eval_checker.ast_eval")
stub("bfcl_eval.constants.enums", Language=language)
stub("bfcl_eval.constants.model_config", MODEL_CONFIG_MAPPING=Anything())
stub("bfcl_eval.constants.type_mappings", JAVA_TYPE_CONVERSION={}, JS_TYPE_CONVERSION={})
stub("bfcl_eval.eval_checker.ast_eval.type_convertor")
stub("bfcl_eval.eval_checker.ast_eval.type_convertor.java_type_converter", java_type_converter=None)
stub("bfcl_eval.eval_checker.ast_eval.type_convertor.js_type_converter", js_type_converter=None)
checker = load("ast_checker", os.path.join(bfcl, "bfcl_eval/eval_checker/ast_eval/ast_checker.py"))


def pick(options):
    """One accepted value: values of an object are lists of accepted values again."""
    v = rng.choice(options) if options else None
    if isinstance(v, dict):
        return {k: pick(o) if isinstance(o, list) else o for k, o in v.items() if not isinstance(o, list) or "" not in o or rng.random() < 0.5}
    if isinstance(v, list) and v and isinstance(v[0], dict):
        return [pick([item]) for item in v]
    return v


def calls_of(truth, first):
    out = []
    for call in truth:
        name, params = next(iter(call.items()))
        args = {}
        for p, options in params.items():
            if first and options and options[0] != "":
                args[p] = pick(options[:1])
            elif [o for o in options if o != ""] and not ("" in options and rng.random() < 0.5):
                args[p] = pick([o for o in options if o != ""])
        out.append({name: args})
    return out


def mutated(calls):
    calls = json.loads(json.dumps(calls))
    kind = rng.randrange(9)
    if not calls:
        return calls
    c = rng.choice(calls)
    name = next(iter(c))
    args = c[name]
    keys = list(args)
    k = rng.choice(keys) if keys else None
    if kind == 0:
        calls.append(json.loads(json.dumps(c)))
    elif kind == 1:
        calls.remove(c)
    elif kind == 2:
        args["unknown"] = 1
    elif k is None:
        c["other" + name] = c.pop(name)
    elif kind == 3:
        del args[k]
    elif kind == 4:
        args[k] = rng.choice([1, 1.0, True, "1", [], {}, None, [1], ["a"], {"a": 1}])
    elif kind == 5 and isinstance(args[k], str):
        args[k] = rng.choice([args[k].upper(), args[k].replace(" ", "-"), args[k] + "x", " " + args[k], args[k].replace("'", '"')])
    elif kind == 5 and isinstance(args[k], (int, float)):
        args[k] = rng.choice([float(args[k]), int(args[k]), args[k] + 1, str(args[k])])
    elif kind == 6 and isinstance(args[k], list):
        args[k] = rng.choice([args[k][::-1], args[k][:1], args[k] + args[k], [str(v) for v in args[k]]])
    elif kind == 7:
        rng.shuffle(calls)
    else:
        c["other" + name] = c.pop(name)
    return calls


data = os.path.join(bfcl, "bfcl_eval/data")
for category in "simple_python multiple parallel parallel_multiple live_simple live_multiple live_parallel live_parallel_multiple".split():
    file = "BFCL_v4_%s.json" % category
    truths = {}
    for line in open(os.path.join(data, "possible_answer", file)):
        row = json.loads(line)
        truths[row["id"]] = row["ground_truth"]
    for line in open(os.path.join(data, file)):
        row = json.loads(line)
        truth, functions = truths[row["id"]], row["function"]
        plain = calls_of(truth, True)
        for calls in [plain, calls_of(truth, False)] + [mutated(plain) for _ in range(6)]:
            try:
                valid = checker.ast_checker(functions, calls, truth, language.PYTHON, category, "m")["valid"]
            except Exception as e:  # the checker fails on some calls: they are not right
                valid = False
            key = json.dumps({"category": category, "function": functions, "ground_truth": truth})
            print(json.dumps({"scorer": "bfcl", "reference": key, "text": json.dumps(calls), "right": bool(valid)}))

# lm-eval's filters need a registry; its metric needs numpy, so that its four substitutions are repeated here.
stub("lm_eval"), stub("lm_eval.api"), stub("lm_eval.api.filter", Filter=object)
stub("lm_eval.api.registry", register_filter=lambda name: lambda c: c)
extraction = load("extraction", os.path.join(lm, "lm_eval/filters/extraction.py"))
strict = extraction.RegexFilter(r"#### (\-?[0-9\.\,]+)", 0)
flexible = extraction.RegexFilter(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", -1)


def same(a, b):
    for s in [",", r"\$", r"(?s).*#### ", r"\.$"]:
        a, b = re.sub(s, "", a), re.sub(s, "", b)
    return a.lower() == b.lower()


pieces = ["#### ", "####", "The answer is ", "$", "-", ".", ",", " ", "\n", "so ", "=", "+", "%", "\u00e9"]
for i in range(5000):
    n = str(rng.randrange(-20, 20000))
    text = "".join(rng.choice(pieces + [n, n, "%d" % rng.randrange(3000), "{:,}".format(rng.randrange(100000)), "1.50"]) for _ in range(rng.randrange(1, 14)))
    if not text.strip():
        continue
    for name, f in [("gsm8k-strict", strict), ("gsm8k-flexible", flexible)]:
        found = f.apply([[text]], [None])[0][0]
        print(json.dumps({"scorer": name, "reference": n, "text": text, "right": same(found, n)}))

try:
    from statsmodels.stats.contingency_tables import mcnemar
    for i in range(1000):
        b, c = rng.randrange(60), rng.randrange(60)
        print(json.dumps({"lost": b, "gained": c, "p": float(mcnemar([[9, b], [c, 9]], exact=True).pvalue)}))
except ImportError:
    print(json.dumps({"missing": "statsmodels"}))
