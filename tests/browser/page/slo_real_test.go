//go:build real

package page_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
	"github.com/tacho-bench/tacho/tests/browser/chrome"
)

const ttftHero = `document.querySelector('#hero-chart [data-figure="TTFT over load"]')`

// sloText returns the sentences about the chosen SLO.
func sloText(p *tab) string {
	p.t.Helper()
	return eval[string](p, "document.getElementById('slo-answer').innerText")
}

// writeSLO replaces the text of the form, as a reader does.
func writeSLO(p *tab, text string) {
	p.t.Helper()
	p.do(fmt.Sprintf(`{ const f = document.getElementById('slo-text'); f.focus(); f.value = %q; f.dispatchEvent(new Event('input', { bubbles: true })); }`, text))
}

// ladder returns a run whose levels at 10, 20, 30 ... requests/s have the given TTFT p99 in
// ms.
func ladder(ttft ...float64) outcome.Run {
	var lists [][]*tacho.Record
	for i := range ttft {
		lists = append(lists, requests(i, 60, 10, 0))
	}
	run := measured(about, lists...)
	for i, v := range ttft {
		stats := run.Levels[i].Summary.Dist(metric.TTFT).Stats
		for k := range stats.Percentiles {
			if stats.Percentiles[k].P == 99 {
				stats.Percentiles[k].Value = v
			}
		}
	}
	return run
}

// TestRealChosenSLO chooses metric, percentile and limit in the form, as a reader does.
func TestRealChosenSLO(t *testing.T) {
	run := ladder(100, 200, 400)
	p := open(t, desk, "", run)
	published := eval[string](p, "document.getElementById('top').innerText + document.getElementById('numbers').innerText")
	if said := sloText(p); said != "" {
		t.Errorf("without a chosen SLO the page says %q", said)
	}
	writeSLO(p, "ttft:p99<250ms")
	p.wait("location.hash.includes('slo=ttft%%3Ap99%%3C250ms')")
	if said := sloText(p); !strings.HasPrefix(said, "At TTFT p99 ≤ 250 ms: up to 20 requests/s (") || !strings.Contains(said, "TTFT p99 is 400 ms at 30 requests/s.") || !strings.Contains(said, "Your own SLO") {
		t.Errorf("the page says %q", said)
	}
	if got := eval[string](p, ttftHero+`.querySelector('[data-own]').dataset.own + ' ' + document.querySelector('[data-own-limit]').dataset.ownLimit`); got != "0:1 250" {
		t.Errorf("the chart marks %q", got)
	}
	if got := eval[string](p, `[...document.querySelectorAll('#levels tbody tr')].map((r) => r.innerText.match(/met|missed/)?.[0]).join()`); got != "met,met,missed" {
		t.Errorf("the table says %s", got)
	}
	if now := eval[string](p, "document.getElementById('top').innerText + document.getElementById('numbers').innerText"); now != published {
		t.Errorf("the published answer changed from %q to %q", published, now)
	}
	// Another metric moves its chart to the place of the main chart.
	writeSLO(p, "e2el:p99<250ms")
	p.wait(`document.querySelector('#hero-chart figure').dataset.figure === 'E2EL over load' && document.querySelector('#sweep-charts [data-figure="TTFT over load"]') && location.hash.includes('e2el')`)
	if id := eval[string](p, "document.activeElement.id"); id != "slo-text" {
		t.Errorf("the focus moved to %q", id)
	}
	p.click("#slo-clear")
	p.wait(`document.querySelector('#hero-chart [data-figure="Pareto"]') && !location.hash.includes('slo=') && !document.querySelector('[data-own]') && document.activeElement.id === 'slo-text'`)
	if got := eval[[]string](p, `[...document.querySelectorAll('#sweep-charts figure')].filter((f) => !f.hidden).map((f) => f.dataset.figure)`); strings.Join(got, ", ") != "Throughput, TTFT over load, TPOT over load" {
		t.Errorf("the charts are %q", got)
	}
}

// TestRealLinkOfSLO opens links with an SLO.
func TestRealLinkOfSLO(t *testing.T) {
	invalid := ladder(100, 200, 400)
	invalid.Levels[1].Summary.Verdict = metric.Verdict{Severity: metric.Invalid}
	degraded := ladder(100, 200, 400)
	degraded.Levels[1].Summary.Verdict = metric.Verdict{Severity: metric.Degraded}
	again := ladder(100, 400, 200)
	again.Levels[0].Summary.Failed = 20
	for name, tc := range map[string]struct {
		run  outcome.Run
		slo  string
		want []string
	}{
		"met up to a load":     {ladder(100, 200, 400), "ttft:p99<0.25s", []string{"At TTFT p99 ≤ 250 ms: up to 20 requests/s", "requests/s served, ", "TTFT p99 is 400 ms at 30 requests/s."}},
		"met at the limit":     {ladder(100, 200, 400), "ttft:p99%3C=200ms", []string{"up to 20 requests/s"}},
		"all meet it":          {ladder(100, 200, 400), "ttft:p99<500ms", []string{"no limit found, because all measured loads meet it; the highest is 30 requests/s"}},
		"none meets it":        {ladder(100, 200, 400), "ttft:p99<50ms", []string{"no measured load meets it; TTFT p99 is 100 ms at 10 requests/s."}},
		"INVALID never meets":  {invalid, "ttft:p99<250ms", []string{"up to 10 requests/s", "Excluded because INVALID: 20 requests/s."}},
		"DEGRADED is named":    {degraded, "ttft:p99<250ms", []string{"up to 20 requests/s (DEGRADED, "}},
		"a lower load counts":  {again, "ttft:p99<250ms", []string{"no measured load meets it; 25 % of the requests failed at 10 requests/s.", "Met again at 30 requests/s, which does not count because a lower load misses it."}},
		"unknown percentile":   {ladder(100, 200, 400), "ttft:p77<250ms", []string{"At TTFT p77 ≤ 250 ms: no level can be judged."}},
		"a mean and failures":  {ladder(100, 200, 400), "ttft.mean<1h,error<1%", []string{"At mean TTFT ≤ 3,600,000 ms, failed requests ≤ 1 %: no limit found"}},
		"two percentiles":      {ladder(100, 200, 400), "e2el:p99<1h,ttft:p99<250ms", []string{"up to 20 requests/s", "TTFT p99 is 400 ms at 30 requests/s."}},
		"a speed":              {ladder(100, 200, 400), "user_speed:p50>1000000", []string{"no measured load meets it; USER_SPEED p50 is "}},
		"not an SLO":           {ladder(100, 200, 400), `<img src=x onerror="alert(1)">`, nil},
		"a run with one level": {measured(about, requests(0, 60, 10, 0)), "ttft:p99<250ms", nil},
		"all levels are INVALID": {func() outcome.Run {
			r := ladder(100, 200)
			for i := range r.Levels {
				r.Levels[i].Summary.Verdict = metric.Verdict{Severity: metric.Invalid}
			}
			return r
		}(), "ttft:p99<250ms", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, desk, "#slo="+tc.slo, tc.run)
			said := sloText(p)
			if (said == "") != (tc.want == nil) {
				t.Errorf("the page says %q", said)
			}
			for _, want := range tc.want {
				if !strings.Contains(said, want) {
					t.Errorf("the page says %q, want %q", said, want)
				}
			}
			if tc.run.Levels[0].Summary.Verdict.Severity == metric.Invalid && eval[bool](p, "document.getElementById('slo').checkVisibility()") {
				t.Error("an INVALID run offers a choice")
			}
		})
	}
}

// TestRealSLOOfSeveralRuns checks the sentence and the mark of each run.
func TestRealSLOOfSeveralRuns(t *testing.T) {
	other := ladder(100, 150, 200)
	other.Label, other.Name = "other", "other"
	p := open(t, desk, "#slo=ttft:p99<250ms", ladder(100, 200, 400), other)
	if said := sloText(p); !strings.Contains(said, "tuned: up to 20 requests/s") || !strings.Contains(said, "other: no limit found") {
		t.Errorf("the page says %q", said)
	}
	if got := eval[[]string](p, `[...document.querySelectorAll('[data-own]')].map((e) => e.dataset.own)`); strings.Join(got, " ") != "0:1 1:2" {
		t.Errorf("the chart marks %q", got)
	}
	p.click("[data-run='1']") // hides the other run
	p.wait(`document.querySelectorAll('[data-own]').length === 1 && !document.getElementById('slo-answer').innerText.includes('other')`)
}

// TestRealSLOOfTheRun checks that the form begins with the SLO of the run, and that Enter
// shows it.
func TestRealSLOOfTheRun(t *testing.T) {
	for _, view := range []chrome.View{desk, {Width: 390, Height: 844}} {
		p := open(t, view, "", withSLO())
		if got := eval[string](p, `document.getElementById('slo-text').value`); got != "ttft:p99<100ms" {
			t.Errorf("the form begins with %q", got)
		}
		if said := sloText(p); said != "" {
			t.Errorf("the page says %q before the reader chose", said)
		}
		p.do(`document.getElementById('slo-text').focus()`)
		p.keys(false, "Enter")
		p.wait(`document.getElementById('slo-answer').innerText.includes('At TTFT p99 ≤ 100 ms') && document.activeElement.id === 'slo-clear'`)
		if over := eval[float64](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("%d wide: the page is %v px too wide", view.Width, over)
		}
	}
}

// TestRealSLOOfConcurrency checks the words for a load without a rate.
func TestRealSLOOfConcurrency(t *testing.T) {
	run := ladder(100, 200, 400)
	for i := range run.Levels {
		n := 8 << i
		run.Levels[i].Setting = outcome.Setting{Index: i, Name: fmt.Sprintf("--max-concurrency %d", n), Value: fmt.Sprint(n), Concurrency: n}
	}
	if said := sloText(open(t, desk, "#slo=ttft:p99<250ms", run)); !strings.Contains(said, "up to concurrency 16 (") {
		t.Errorf("the page says %q", said)
	}
	for i := range run.Levels {
		run.Levels[i].Setting = outcome.Setting{Index: i, Name: "--backend " + []string{"vllm", "openai", "tgi"}[i]}
	}
	if said := sloText(open(t, desk, "#slo=ttft:p99<250ms", run)); !strings.Contains(said, "met at backend vllm, backend openai, missed at backend tgi.") {
		t.Errorf("the page says %q", said)
	}
}

// TestRealFlagAndFormAgree judges one run by --slo and by the form.
func TestRealFlagAndFormAgree(t *testing.T) {
	for slo, held := range map[string]string{
		"ttft:p99<50ms": "", "ttft:p99<250ms": "20", "ttft:p99<1s": "30", "error<1%,ttft.p99<0.25s": "20", "TTFT:p99<=250, itl.mean<1m": "20",
		"user_speed:p50>1e9": "",
	} {
		run := ladder(100, 200, 400)
		for i := range run.Levels {
			run.Levels[i].Summary.Config.SLO = slo
		}
		flag, of := "", conclusion.Of(&run)
		if of.Held != nil {
			flag = run.Levels[of.Held.Level].Value
		}
		p := open(t, desk, "#slo="+url.PathEscape(slo), run)
		form := ""
		if got := eval[[]string](p, `ownAnswers().map((a) => a.held?.setting.value ?? '')`); len(got) == 1 {
			form = got[0]
		}
		states := eval[string](p, `levelsShown().map(ownState).join()`)
		for i, state := range strings.Split(states, ",") {
			if want := string(run.Levels[i].Summary.Standing()); state != want {
				t.Errorf("%s, level %d: the form says %s, --slo %s", slo, i, state, want)
			}
		}
		if form != flag || flag != held {
			t.Errorf("%s: the form holds %q, --slo %q, want %q", slo, form, flag, held)
		}
	}
}

// TestRealGrammarOfSLO reads texts with the page's script and with ParseSLO: the same goals or the same error.
func TestRealGrammarOfSLO(t *testing.T) {
	texts := []string{
		"ttft:p99<500ms", "ttft.p99<500", " TTFT:P99 <= 0.5 s , error<1% ", "tpot.mean<50ms,itl:p99.9<1s", "e2e:p90<1m30s", "ttft:median<1e2", "ttft:avg<250us",
		"error<0.01", "errors<.5%", "failed<5%", "failures<1", "error<100%", "error>1%", "error<0%", "error<1s", "error.p99<1%",
		"user_speed:p50>20", "user_speed:p50<20", "user_speed:p50>20tok/s", "ttft:p99>5ms", "cached_share:p50<0.5", "input_tokens:p50>3tok",
		"", " , ", "ttft", "ttft:p99", "ttft<5", "ttft:<5", "ttft.<5", "ttft:p0<5", "ttft:p100<5", "ttft:99<5", "ttft:p<5", "ttft:p99.<5", "ttft:pp9<5", "ttft:p9.9.9<5",
		"ttft:p99<", "ttft:p99<five", "ttft:p99<-5", "ttft:p99<0", "ttft:p99<nan", "ttft:p99<inf", "ttft:p99<1e999", "ttft:p99<5 m s", "ttft:p99<1d", "ttft:p99<+10%", "ttft:p99<-10%", "ttft:p99<10%", "ttft:p99<+x%",
		"ttfb:p99<5", "tftt:p99<5", "request-latency:p9<1", "nonsense<1", "request_latency:p9<1s", "inter_token_latency:p9<1s", "output_per_gpu>3", "request_throughput>3", "output_troughput>3",
		"verdict<valid", "verdict>invalid", "verdict<fine", "unsent<1%", "missing<1%", "missing.p9<1%", "stalled_share<0.1", "slo", "SLO,ttft:p99<1",
		"ttft:p99<500ms,ttfx:p99<1", "ttft:p99>5,error", "energy_per_token<3J", "cost_total<1", "\"<5", "ü:p9<1", "<5", ">", "ttft:p99<5<6", "ttft:p99=5",
	}
	type read struct {
		Goals []goal `json:"goals"`
		Error string `json:"error"`
	}
	list := must.Get(json.Marshal(texts))(t)
	p := open(t, desk, "", ladder(100, 200))
	got := eval[[]read](p, fmt.Sprintf(`%s.map((text) => { try { return { goals: parseSLO(text) }; } catch (e) { return { error: e.message }; } })`, list))
	round := func(v float64) float64 { return math.Round(v*1e9) / 1e9 }
	for i, text := range texts {
		for k := range got[i].Goals {
			got[i].Goals[k].Limit = round(got[i].Goals[k].Limit)
		}
		var want read
		conditions, err := metric.ParseSLO(text)
		if err != nil {
			want.Error = err.Error()
		}
		for _, c := range conditions {
			g := goal{Name: c.Name, P: c.P, Above: c.Above, Limit: round(c.Limit), Unit: c.Unit}
			if c.Metric != nil {
				g.Metric = c.Metric.Name
			}
			want.Goals = append(want.Goals, g)
		}
		if a, b := fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got[i]); a != b {
			t.Errorf("%q:\nParseSLO %s\npage     %s", text, a, b)
		}
	}
	writeSLO(p, "ttft:p99<fast")
	p.do(`document.getElementById('slo').requestSubmit()`)
	if said := sloText(p); !strings.Contains(said, `"ttft:p99<fast": "fast" is not a limit of ttft.p99`) {
		t.Errorf("the form says %q", said)
	}
}

// A goal is a goal as the page reads it.
type goal struct {
	Name   string      `json:"name"`
	Metric string      `json:"metric"`
	P      float64     `json:"p"`
	Above  bool        `json:"above"`
	Limit  float64     `json:"limit"`
	Unit   metric.Unit `json:"unit"`
}
