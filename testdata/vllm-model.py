# Writes the files vLLM needs to load a model with dummy weights: the model's shape
# and a tokenizer with one token per byte. One token in eight ends an answer, so that
# answers stop by themselves.
import json, sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
dir = sys.argv[1]
vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
vocab["<|end|>"] = end = len(vocab)
t = Tokenizer(models.BPE(vocab=vocab, merges=[]))
t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
t.add_special_tokens(["<|end|>"])
t.save(dir + "/tokenizer.json")
def write(name, **members): json.dump(members, open(dir + "/" + name, "w"))
write("tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast", eos_token="<|end|>", model_max_length=512,
    chat_template="{% for m in messages %}{{ m['role'] }}: {{ m['content'] }} {% endfor %}")
write("config.json", architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=264, hidden_size=64, intermediate_size=128,
    num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, head_dim=32, max_position_embeddings=512, rms_norm_eps=1e-5,
    hidden_act="silu", eos_token_id=end, torch_dtype="float32", tie_word_embeddings=False)
write("generation_config.json", eos_token_id=[end] + list(range(0, end, 8)))
