package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/metric"
)

// A Style is the layout of the classic block in one generation of the reference.
type Style struct {
	Name    string
	Aliases []string
	Doc     string
}

func (s Style) String() string { return strings.Join(append([]string{s.Name}, s.Aliases...), ", ") }

// Styles are the generations, oldest first.
var Styles = []Style{
	{"2024", []string{"old"}, "no failed requests, no peaks, no configured limits"},
	{"2025-09", nil, "with peaks and the configured rate and concurrency"},
	{"2025-10", nil, "with failed requests"},
	{"2025-12", []string{"current"}, `"Total token" with a small t`},
}

// Indices in Styles.
const (
	style2024 = iota
	style2025Sep
	style2025Oct
	style2025Dec
	styleCurrent = style2025Dec
)

// styleNamed returns the index of a style by its name or alias. An empty name is the
// current style.
func styleNamed(name string) (int, error) {
	if name == "" {
		return styleCurrent, nil
	}
	i := slices.IndexFunc(Styles, func(s Style) bool { return s.Name == name || slices.Contains(s.Aliases, name) })
	if i < 0 {
		return 0, spelling.Unknown("report style", name, strings.Split(Names(Styles), ", "))
	}
	return i, nil
}

// CheckStyle returns an error if the style is unknown.
func CheckStyle(name string) error {
	_, err := styleNamed(name)
	return err
}

// rowKind is the layout of a row in the classic block.
type rowKind int

const (
	wholeRow    rowKind = iota // label and integer
	decimalRow                 // label and number with two decimals
	bareRow                    // label alone
	titleRow                   // label centred in '='
	sectionRow                 // label centred in '-'
	footerRow                  // '=' from end to end
	unknownRow                 // text kept as it is
	labelWidth  = 40
	valueWidth  = 10
	blockWidth  = 50
	placeholder = "{}" // replaced with the row's parameter in a key or label
)

// A row is one possible line of the classic block.
type row struct {
	kind  rowKind
	key   string // name of the value in JSON and CSV, as in the reference's JSON
	label string
	since int  // index in Styles of the first style with this row
	until int  // index of the last style with this row
	must  bool // required in every block of these styles

	counts bool // a number of requests, which is known even if it is 0

	// show calls emit for each line of the row. A nil show marks a row that is only
	// parsed.
	show func(s *metric.Summary, emit emitter)
}

// An emitter receives one line: the parameter of its label, and its value.
type emitter func(param string, value float64)

// rows are all possible lines of a classic block, in order.
var rows = classicRows()

func classicRows() []row {
	list := openEnded(
		row{kind: titleRow, label: " Serving Benchmark Result ", must: true, show: heading(nil)},
		whole("completed", "Successful requests:", func(s *metric.Summary) int { return s.Completed }).counting(),
		whole("failed", "Failed requests:", func(s *metric.Summary) int { return s.Failed }).from(style2025Oct).counting(),
		whole("max_concurrency", "Maximum request concurrency:", func(s *metric.Summary) int { return s.Config.MaxConcurrency }).
			from(style2025Sep).when(func(s *metric.Summary) bool { return s.Config.MaxConcurrency > 0 }),
		decimal("request_rate", "Request rate configured (RPS):", func(s *metric.Summary) float64 { return s.Config.RequestRate }).
			from(style2025Sep).when(func(s *metric.Summary) bool { return s.Config.RequestRate > 0 }),
		decimal("duration", "Benchmark duration (s):", func(s *metric.Summary) float64 { return s.DurationS }),
		whole("total_input_tokens", "Total input tokens:", func(s *metric.Summary) int { return s.Tokens.Input }),
		whole("total_output_tokens", "Total generated tokens:", func(s *metric.Summary) int { return s.Tokens.Output }).generating(),
		decimal("request_throughput", "Request throughput (req/s):", func(s *metric.Summary) float64 { return throughputOf(s).RequestsPerS }),
		decimal("input_sequence_throughput", "Input throughput (inputs/s):", func(s *metric.Summary) float64 { return throughputOf(s).InputsPerS }).
			when(func(s *metric.Summary) bool { return s.Config.Pools }),
		row{kind: decimalRow, key: "input_throughput", label: "Input token throughput (tok/s):"},
		decimal("request_goodput", "Request goodput (req/s):", func(s *metric.Summary) float64 { return goodputOf(s) }).
			when(func(s *metric.Summary) bool { return len(s.Config.Goodput) > 0 }).generating(),
		decimal("output_throughput", "Output token throughput (tok/s):", func(s *metric.Summary) float64 { return throughputOf(s).OutputTokensPerS }).generating(),
		decimal("max_output_tokens_per_s", "Peak output token throughput (tok/s):", func(s *metric.Summary) float64 { return float64(peaksOf(s).EventsPerS) }).from(style2025Sep).generating(),
		decimal("max_concurrent_requests", "Peak concurrent requests:", func(s *metric.Summary) float64 { return float64(peaksOf(s).TouchingASecond) }).from(style2025Sep).generating(),
		decimal("rtfx", "RTFx (Inverse Real-Time Factor):", func(s *metric.Summary) float64 { return throughputOf(s).AudioSPerS }).
			from(style2025Dec).when(func(s *metric.Summary) bool { return throughputOf(s).AudioSPerS > 0 }),
		decimal("total_token_throughput", "Total Token throughput (tok/s):", func(s *metric.Summary) float64 { return throughputOf(s).TotalTokensPerS }).to(style2025Oct),
		decimal("total_token_throughput", "Total token throughput (tok/s):", func(s *metric.Summary) float64 { return throughputOf(s).TotalTokensPerS }).from(style2025Dec),
	)
	list = append(list, probeRows()...)
	for i := range metric.Sections {
		list = append(list, sectionRows(&metric.Sections[i])...)
	}
	list = append(list, draftingRows()...)
	return append(list, row{kind: footerRow, must: true, until: styleCurrent, show: heading(nil)})
}

// openEnded makes the current style the last style of each row without one.
func openEnded(list ...row) []row {
	for i := range list {
		if list[i].until == 0 {
			list[i].until = styleCurrent
		}
	}
	return list
}

func whole(key, label string, of func(*metric.Summary) int) row {
	return row{kind: wholeRow, key: key, label: label, must: true, show: func(s *metric.Summary, emit emitter) { emit("", float64(of(s))) }}
}

func decimal(key, label string, of func(*metric.Summary) float64) row {
	return row{kind: decimalRow, key: key, label: label, must: true, show: func(s *metric.Summary, emit emitter) { emit("", of(s)) }}
}

func (r row) from(style int) row { r.since = style; return r }
func (r row) to(style int) row   { r.until = style; return r }

func (r row) counting() row { r.counts = true; return r }

// when makes the row conditional.
func (r row) when(shown func(*metric.Summary) bool) row {
	show := r.show
	r.must = false
	r.show = func(s *metric.Summary, emit emitter) {
		if shown(s) {
			show(s, emit)
		}
	}
	return r
}

// generating hides the row for models that generate no tokens.
func (r row) generating() row {
	show := r.show
	r.show = func(s *metric.Summary, emit emitter) {
		if !s.Config.Pools {
			show(s, emit)
		}
	}
	return r
}

// heading shows a line without a value if shown returns true. A nil shown means always.
func heading(shown func(*metric.Summary) bool) func(*metric.Summary, emitter) {
	return func(s *metric.Summary, emit emitter) {
		if shown == nil || shown(s) {
			emit("", 0)
		}
	}
}

// sectionRows are the rows of one section. Percentiles are in the order of the options.
func sectionRows(section *metric.Section) []row {
	m := section.Metric
	wanted := func(s *metric.Summary) bool { return s.Config.Shows(section) }
	label := func(statistic string) string { return statistic + " " + section.Label + " (ms):" }
	key := func(statistic string) string { return statistic + "_" + section.Key + "_ms" }
	percentiles := row{
		kind: decimalRow, key: key("p" + placeholder), label: label("P" + placeholder),
		show: func(s *metric.Summary, emit emitter) {
			stats := s.Classic(m)
			for _, p := range s.Config.Percentiles {
				emit(percentileWord(p), stats.Percentile(p))
			}
		},
	}
	return openEnded(
		row{kind: sectionRow, label: section.Title, show: heading(wanted)},
		decimal(key("mean"), label("Mean"), func(s *metric.Summary) float64 { return s.Classic(m).Mean }).when(wanted),
		decimal(key("median"), label("Median"), func(s *metric.Summary) float64 { return s.Classic(m).Median }).when(wanted),
		percentiles.when(wanted),
	)
}

func probeRows() []row {
	probed := func(s *metric.Summary) bool { return s.Probe != nil && s.Probe.Completed > 0 }
	return openEnded(
		row{kind: sectionRow, label: "Probe Requests", show: heading(probed)},
		whole("probe_completed", "Probe requests completed:", func(s *metric.Summary) int { return s.Probe.Completed }).when(probed),
		whole("probe_failed", "Probe requests failed:", func(s *metric.Summary) int { return s.Probe.Failed }).when(probed),
		decimal("probe_median_e2el_ms", "Median probe E2EL (ms):", func(s *metric.Summary) float64 { return s.Probe.MedianMillis }).when(probed),
		decimal("probe_p99_e2el_ms", "P99 probe E2EL (ms):", func(s *metric.Summary) float64 { return s.Probe.P99Millis }).when(probed),
		decimal("probe_max_e2el_ms", "Max probe E2EL (ms):", func(s *metric.Summary) float64 { return s.Probe.MaxMillis }).when(probed),
	)
}

// draftingRows are the sections from counters of the server.
func draftingRows() []row {
	diffused := func(s *metric.Summary) bool { return s.Diffusion() != nil }
	drafted := func(s *metric.Summary) bool { return s.Speculation() != nil && !diffused(s) }
	ofDiffusion := func(of func(*metric.Diffusion) float64) func(*metric.Summary) float64 {
		return func(s *metric.Summary) float64 { return of(s.Diffusion()) }
	}
	positions := row{
		kind: decimalRow, key: "spec_decode_position_" + placeholder + "_acceptance", label: "  Position " + placeholder + ":",
		show: func(s *metric.Summary, emit emitter) {
			for i, share := range s.Speculation().ShareAt() {
				emit(strconv.Itoa(i), 100*share)
			}
		},
	}
	return openEnded(
		row{kind: sectionRow, label: "Diffusion Decoding", show: heading(diffused)},
		decimal("diffusion_committed_throughput", "Committed throughput (tok/s):", committedPerS).when(diffused),
		decimal("diffusion_steps_per_canvas", "Denoising steps per canvas:", ofDiffusion((*metric.Diffusion).StepsPerCanvas)).when(diffused),
		decimal("diffusion_committed_per_step", "Committed per denoising step:", ofDiffusion((*metric.Diffusion).CommittedPerStep)).when(diffused),
		whole("diffusion_committed_tokens", "Committed tokens:", func(s *metric.Summary) int { return int(s.Diffusion().Committed) }).when(diffused),
		whole("diffusion_denoising_steps", "Denoising steps:", func(s *metric.Summary) int { return int(s.Diffusion().DenoisingSteps()) }).when(diffused),
		whole("diffusion_canvas_positions", "Canvas positions evaluated:", func(s *metric.Summary) int { return int(s.Diffusion().Positions) }).when(diffused),
		row{kind: sectionRow, label: "Speculative Decoding", show: heading(drafted)},
		decimal("spec_decode_acceptance_rate", "Acceptance rate (%):", func(s *metric.Summary) float64 { return 100 * s.Speculation().AcceptedShare() }).when(drafted),
		decimal("spec_decode_acceptance_length", "Acceptance length:", func(s *metric.Summary) float64 { return s.Speculation().Length() }).when(drafted),
		whole("spec_decode_num_drafts", "Drafts:", func(s *metric.Summary) int { return int(s.Speculation().Drafts) }).when(drafted),
		whole("spec_decode_draft_tokens", "Draft tokens:", func(s *metric.Summary) int { return int(s.Speculation().DraftTokens) }).when(drafted),
		whole("spec_decode_accepted_tokens", "Accepted tokens:", func(s *metric.Summary) int { return int(s.Speculation().Accepted) }).when(drafted),
		row{kind: bareRow, label: "Per-position acceptance (%):", show: heading(func(s *metric.Summary) bool { return drafted(s) && len(s.Speculation().ShareAt()) > 0 })},
		positions.when(drafted),
	)
}

func committedPerS(s *metric.Summary) float64 {
	if s.DurationS == 0 {
		return 0
	}
	return s.Diffusion().Committed / s.DurationS
}

// The classic block of our own runs prints 0 for a value that was not measured, like the reference. The
// block of another tool's result prints n/a.

func throughputOf(s *metric.Summary) metric.Throughput {
	if s.Throughput == nil {
		return metric.Throughput{}
	}
	return *s.Throughput
}

func goodputOf(s *metric.Summary) float64 {
	if t := throughputOf(s); t.GoodPerS != nil {
		return *t.GoodPerS
	}
	return 0
}

func peaksOf(s *metric.Summary) metric.Peaks {
	if s.Peaks == nil {
		return metric.Peaks{}
	}
	return *s.Peaks
}

// A line is one line of a classic block.
type line struct {
	row     *row
	param   string  // parameter of the row's label
	value   float64 // value of an integer or decimal row
	width   int     // width of a title, section or footer
	trimmed bool    // without the spaces after the value
	unknown bool    // the other tool that measured the level does not report the value
	cr      bool    // ends in a carriage return
	text    string  // text of an unknown row
}

// key returns the name of the line's value.
func (l line) key() string { return strings.ReplaceAll(l.row.key, placeholder, l.param) }

// number returns the line's value as printed.
func (l line) number() string {
	if l.unknown {
		return notMeasured
	}
	if l.row.kind == wholeRow {
		return strconv.FormatInt(int64(l.value), 10)
	}
	return pythonFixed(l.value)
}

// String returns the line as printed, without its newline.
func (l line) String() string {
	text := l.text
	label := strings.ReplaceAll(l.row.label, placeholder, l.param)
	switch l.row.kind {
	case wholeRow, decimalRow:
		text = fmt.Sprintf("%-*s %-*s", labelWidth, label, valueWidth, l.number())
		if l.trimmed {
			text = strings.TrimRight(text, " ")
		}
	case bareRow:
		text = label
	case titleRow, footerRow:
		text = centre(label, "=", l.width)
	case sectionRow:
		text = centre(label, "-", l.width)
	}
	if l.cr {
		text += "\r"
	}
	return text
}

// centre centres text in a line of fill. An odd character of fill goes to the right.
func centre(text, fill string, width int) string {
	room := max(width-len(text), 0)
	return strings.Repeat(fill, room/2) + text + strings.Repeat(fill, room-room/2)
}

// predictedTitle is the title of a predicted block. It differs from the title of a
// measured block, so no tool mistakes a prediction for a measurement.
var predictedTitle = row{kind: titleRow, label: " PREDICTED Benchmark Result "}

// classicLines returns the classic block of s in the style with the given index.
func classicLines(s *metric.Summary, style int) []line {
	var lines []line
	for i := range rows {
		r := &rows[i]
		if r.show == nil || style < r.since || style > r.until {
			continue
		}
		r.show(s, func(param string, value float64) {
			if r.kind == titleRow && s.Config.Predicted {
				r = &predictedTitle
			}
			missing := value == 0 && unjudged(s) && !r.counts
			lines = append(lines, line{row: r, param: param, value: value, width: blockWidth, unknown: missing})
		})
	}
	return lines
}

// joinLines returns the text of a block without a final newline.
func joinLines(lines []line) string {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l.String())
	}
	return b.String()
}
