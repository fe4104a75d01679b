package archive

// sglangKind is a line that SGLang's serving benchmark appends to its output file.
var sglangKind = Kind{
	Name: "sglang", Doc: "JSON lines of sglang.bench_serving, with or without --output-details",
	read: func(f *file) ([]entry, error) {
		return eachFlat(f, func(d doc) bool { return d.has("mean_e2e_latency_ms") && d.has("total_output_tokens_retokenized") }, func(d doc) (*sheet, error) {
			s := newSheet("sglang.bench_serving", d.text("server_info", "version"))
			s.about.Label, s.about.Dataset = d.text("tag"), d.text("dataset_name")
			s.about.Model, s.about.Tokenizer = d.text("server_info", "model_path"), d.text("server_info", "tokenizer_path")
			return s, nil
		})
	},
}
