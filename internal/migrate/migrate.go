// Package migrate translates command lines of other benchmark tools to flags of tacho. Table has the flags.
package migrate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Translation is a command line of another tool in flags of tacho.
type Translation struct {
	Flags    []string // flags of tacho for the flags of the other tool
	Rest     []string // words that are not flags of another tool
	Needless []string // sentences about flags without an effect
}

// Line translates the flags of other tools on a command line. isOurs reports whether tacho has a flag. A flag of tacho
// is translated only if its value has the form of another tool.
func Line(words []string, isOurs func(name string) bool) (Translation, error) {
	l := &line{isOurs: isOurs, given: map[string][]string{}, lengths: map[string]map[string]string{}}
	for ; len(words) > 0 && words[0] != "--"; words = words[1:] {
		used, err := l.take(words)
		if err != nil {
			return Translation{}, err
		}
		if used == 0 {
			l.out.Rest = append(l.out.Rest, words[0])
		}
		words = words[max(used-1, 0):]
	}
	l.out.Rest = append(l.out.Rest, words...)
	for name, values := range l.file {
		if l.given[name] == nil {
			l.given[name] = values
		}
	}
	for _, l.name = range slices.Sorted(maps.Keys(l.given)) {
		for _, value := range l.given[l.name] {
			if err := l.apply(value); err != nil {
				return Translation{}, fmt.Errorf("--%s %s: %w", l.name, value, err)
			}
		}
		if l.row.Why != "" {
			l.out.Needless = append(l.out.Needless, fmt.Sprintf("--%s has no effect, because %s.", l.name, l.row.Why))
		}
	}
	for _, t := range l.ours {
		l.out.Flags = append(l.out.Flags, "--"+t.name+"="+strings.Join(t.values, ","))
	}
	return l.out, nil
}

// Advice returns tacho's way for a flag that tacho cannot translate, or an empty text. exact is false if the table has
// only the beginning of the name.
func Advice(name string) (advice string, exact bool) {
	if rows := rowsOf()[name]; rows != nil {
		return rows[0].Advice, !translates(name)
	}
	for theirs, rows := range rowsOf() {
		if begin, group := strings.CutSuffix(theirs, "*"); group && strings.HasPrefix(name, begin) {
			return rows[0].Advice, false
		}
	}
	return "", false
}

// A line is a command line of another tool.
type line struct {
	isOurs  func(name string) bool
	given   map[string][]string          // values of the other tool's flags
	file    map[string][]string          // options of inference-perf's file
	lengths map[string]map[string]string // parts of a distribution of lengths, by flag of tacho
	ours    []target
	name    string // of the flag that is being translated
	row     *Row   // of the flag
	out     Translation
}

// A target is a flag of tacho with its values.
type target struct {
	name   string
	values []string
	row    *Row // which set it
}

// take collects the first flag of a command line, if it is another tool's. It returns the number of words used.
func (l *line) take(words []string) (used int, err error) {
	name, value, assigned := strings.Cut(strings.TrimPrefix(words[0], "--"), "=")
	name = strings.ReplaceAll(name, "_", "-")
	if used = 1; !assigned && len(words) > 1 {
		value, used = words[1], 2
	}
	row, _ := l.rowOf(name, value)
	tree, ext := parse(value), filepath.Ext(value)
	parts, _ := tree.(map[string]any)
	switch {
	case words[0] == "" || words[0][0] != '-':
		return 0, nil
	case name == "config-file" && value != "" || (name == "concurrency" || name == "-c") && (ext == ".yml" || ext == ".yaml"):
		return used, l.read(value)
	case slices.Contains(strings.Fields(structured), name) && tree != nil && (parts["kind"] != nil || !l.isOurs(name)):
		options := map[string][]string{}
		flatten(options, name, tree)
		for part, values := range options {
			if rowsOf()[part] == nil {
				return 0, fmt.Errorf("--%s %s: tacho cannot translate %s; tacho bench --help-all lists all options", name, value, part)
			}
			l.given[part] = append(l.given[part], values...)
		}
	case !translates(name) || l.isOurs(name) && (row == nil || row.Values == ""):
		return 0, nil
	case rowsOf()[name+"!"] != nil:
		l.given[name] = []string{""}
		return 1, nil
	case !assigned && used == 1:
		return 0, fmt.Errorf("--%s needs a value", name)
	default:
		l.given[name] = append(l.given[name], value)
	}
	return used, nil
}

// parse parses a JSON object or list, and GuideLLM's KEY=VALUE,KEY=VALUE. It returns nil for other texts.
func parse(text string) any {
	var tree any
	if strings.ContainsAny(text[:min(1, len(text))], "[{") && yaml.Unmarshal([]byte(text), &tree) == nil { // YAML contains JSON
		return tree
	}
	keys := map[string]any{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil
		}
		keys[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return keys
}

// flatten writes each value of a tree to its path: server.base-url.
func flatten(out map[string][]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			flatten(out, strings.TrimPrefix(path+"."+strings.ReplaceAll(name, "_", "-"), "."), child)
		}
	case []any:
		for _, child := range v {
			flatten(out, path, child)
		}
	case nil:
	default:
		out[path] = append(out[path], fmt.Sprint(v))
	}
}

// read reads inference-perf's file of options. Flags on the command line take precedence.
func (l *line) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil || tree["load"] == nil && tree["server"] == nil {
		return fmt.Errorf("%s is a configuration of another tool: write a plan with tacho init, and read it with --plan", path)
	}
	l.file = map[string][]string{"api.type": {"completion"}} // inference-perf's default
	flatten(l.file, "", tree)
	for _, name := range slices.Sorted(maps.Keys(l.file)) {
		switch advice, _ := Advice(name); {
		case translates(name):
		case advice != "":
			return fmt.Errorf("%s: %s: %s", path, name, advice)
		case strings.HasPrefix(name, "report.") || strings.HasPrefix(name, "metrics."): // the report has all figures
			delete(l.file, name)
		default:
			return fmt.Errorf("%s: tacho cannot translate %s: remove it, or write a plan with tacho init", path, name)
		}
	}
	return nil
}

// rowOf returns the row for a value of a flag, with tacho's name of the value.
func (l *line) rowOf(name, value string) (*Row, string) {
	for _, r := range rowsOf()[name] {
		if l.value(strings.Fields(r.Unless)...) != "" {
			continue
		}
		if r.Values == "" {
			return r, value
		}
		for v := range strings.FieldsSeq(r.Values) {
			if theirs, ours, _ := strings.Cut(v, "="); theirs == value {
				return r, cmp.Or(ours, value)
			}
		}
	}
	return nil, ""
}

// apply translates a value of a flag.
func (l *line) apply(value string) error {
	if l.row, value = l.rowOf(l.name, value); l.row == nil {
		return errors.New("tacho cannot translate the value; tacho bench --help-all lists all options")
	}
	for flag := range strings.FieldsSeq(l.row.Ours) {
		name, text, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		lacks, empty := false, false
		text = os.Expand(text, func(key string) string {
			names, standard, optional := strings.Cut(key, "=")
			if names == "1" {
				return value
			}
			v := cmp.Or(l.value(strings.Split(names, "|")...), standard)
			lacks, empty = lacks || v == "" && !optional, empty || v == ""
			return v
		})
		name, computed := strings.CutSuffix(name, ":")
		switch {
		case lacks:
			return errors.New(l.row.Advice)
		case computed:
			if text = compute(text); text == "" {
				return fmt.Errorf("want a number above 0, or set --%s", name)
			}
			l.set(name, text)
		case !empty:
			l.set(name, cmp.Or(text, "true"))
		}
	}
	switch {
	case l.row.Rule != nil:
		return l.row.Rule(l, value)
	case l.row.Advice != "" && l.row.Ours == "":
		return errors.New(os.Expand(l.row.Advice, func(string) string { return value }))
	}
	return nil
}

// compute returns A*B or A/B, or an empty text if they are not numbers above 0.
func compute(text string) string {
	i := max(strings.IndexAny(text, "*/"), 0)
	a, err := strconv.ParseFloat(text[:i], 64)
	b, bad := strconv.ParseFloat(text[i+1:], 64)
	if err != nil || bad != nil || a <= 0 || b <= 0 {
		return ""
	}
	if text[i] == '/' {
		b = 1 / b
	}
	return strconv.FormatFloat(a*b, 'f', -1, 64)
}

// inConversation maps flags of single prompts to flags of conversations.
var inConversation = map[string]string{
	"random-input-len": "turn-input-len", "random-output-len": "turn-output-len",
	"random-prefix-len": "system-prompt-len", "random-num-prefixes": "num-system-prompts",
}

// set sets a flag of tacho. Further values of the same row make a list, as in --max-concurrency 1,2. A value of another
// row replaces the flag.
func (l *line) set(name, value string) {
	if turns := l.value("session-turns-mean", "data.turns"); turns != "" && turns != "1" {
		name = cmp.Or(inConversation[name], name)
	}
	i := slices.IndexFunc(l.ours, func(t target) bool { return t.name == name })
	switch {
	case i < 0 || name == "metadata":
		l.ours = append(l.ours, target{name, []string{value}, l.row})
	case l.ours[i].row != l.row:
		l.ours[i] = target{name, []string{value}, l.row}
	case !slices.Contains(l.ours[i].values, value):
		l.ours[i].values = append(l.ours[i].values, value)
	}
}

// value returns the values of the first given flag of several.
func (l *line) value(names ...string) string {
	for _, name := range names {
		if v := l.given[name]; v != nil {
			return strings.Join(v, ",")
		}
	}
	return ""
}

// address translates the address of a server. The path of an endpoint selects the protocol.
func address(l *line, value string) error {
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	ends := map[string]string{"/v1": "", "/v1/chat/completions": "openai-chat", "/v1/completions": "openai", "/v1/embeddings": "openai-embeddings"}
	for end, backend := range ends {
		if before, found := strings.CutSuffix(strings.TrimSuffix(value, "/"), end); found {
			value = before
			if backend != "" {
				l.set("backend", backend)
			}
			break
		}
	}
	l.set("base-url", value)
	return nil
}

// lengths translates a part of a distribution of lengths. The mean comes first in the order of names.
func lengths(l *line, value string) error {
	ours, part := "random-input-len", "mean"
	if strings.Contains(l.name, "out") || strings.HasPrefix(l.name, "osl") {
		ours = "random-output-len"
	}
	for _, p := range []string{"min", "max", "std", "type"} {
		if strings.Contains(l.name, p) {
			part = p
		}
	}
	d := l.lengths[ours]
	if d == nil {
		d = map[string]string{}
		if strings.Contains(l.name, "distribution") { // inference-perf's defaults
			d = map[string]string{"mean": "512", "std": "200", "min": "10", "max": "1024"}
		}
		l.lengths[ours] = d
	}
	d[part] = value
	limits, spread := "", d["std"] != "" && d["std"] != "0"
	if d["min"] != "" && d["max"] != "" {
		limits = fmt.Sprintf("[%s,%s]", d["min"], d["max"])
	}
	l.ours = slices.DeleteFunc(l.ours, func(t target) bool { return t.name == ours })
	switch kind := d["type"]; {
	case kind != "" && kind != "normal" && kind != "fixed" && kind != "uniform":
		return fmt.Errorf("write the lengths as a distribution, as in --%s 'lognormal(600,0.8)'", ours)
	case d["mean"] == "":
		return fmt.Errorf("the mean is missing: write the lengths as a distribution, as in --%s 'normal(100,%s)'", ours, cmp.Or(d["std"], "20"))
	case kind == "uniform" || kind != "fixed" && !spread && d["min"] != d["max"]:
		l.set(ours, fmt.Sprintf("uniform(%s,%s)", cmp.Or(d["min"], d["mean"]), cmp.Or(d["max"], d["mean"])))
	case kind == "fixed" || !spread:
		l.set(ours, d["mean"])
	default:
		l.set(ours, fmt.Sprintf("normal(%s,%s)%s", d["mean"], d["std"], limits))
	}
	return nil
}

// same allows one value only.
func same(l *line, _ string) error {
	if len(slices.Compact(slices.Clone(l.given[l.name]))) > 1 {
		return errors.New(l.row.Advice)
	}
	return nil
}

// extraInputs translates AIPerf's NAME:VALUE or JSON object.
func extraInputs(l *line, _ string) error {
	body := map[string]any{}
	for _, text := range l.given[l.name] {
		if json.Unmarshal([]byte(text), &body) == nil {
			continue
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return errors.New("want NAME:VALUE; set --extra-body to a JSON object")
		}
		if body[name] = value; json.Valid([]byte(value)) {
			body[name] = json.RawMessage(value)
		}
	}
	text, err := json.Marshal(body)
	l.set("extra-body", string(text))
	return err
}

// output translates a file of results. Its extension is the format.
func output(l *line, value string) error {
	format := strings.TrimPrefix(filepath.Ext(value), ".")
	if !slices.Contains([]string{"json", "csv", "html"}, format) {
		return errors.New("set --report FORMAT=PATH, as in --report json=results.json")
	}
	l.set("report", format+"="+value)
	return nil
}
