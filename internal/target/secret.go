package target

import (
	"slices"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
)

// Learn adds the secrets of the plan and the environment to e.Secrets.
func (e *Env) Learn(p *plan.Plan) {
	if e.Secrets == nil {
		e.Secrets = &redact.Secrets{}
	}
	for _, secret := range []string{e.APIKey, e.Tokenizers.Token} {
		e.Secrets.Add(secret)
	}
	e.Secrets.Public(redact.InURL, e.Tokenizers.Endpoint)
	p.Public(e.Secrets)
}

// Scrub removes secrets from a record, because servers often quote an invalid
// key.
func Scrub(secrets *redact.Secrets, r *tacho.Record) {
	if r.Failure != nil {
		r.Failure.Message = secrets.Hide(r.Failure.Message)
	}
	r.Finish, r.Text, r.Answer = secrets.Hide(r.Finish), secrets.Hide(r.Text), secrets.Hide(r.Answer)
	for i := range r.Calls {
		r.Calls[i].Name, r.Calls[i].Arguments = secrets.Hide(r.Calls[i].Name), secrets.Hide(r.Calls[i].Arguments)
	}
	r.ID, r.Endpoint = secrets.Sweep(r.ID), secrets.Sweep(r.Endpoint)
	for i, l := range r.Labels {
		if value := secrets.Sweep(l.Value); value != l.Value {
			r.Labels = slices.Clone(r.Labels) // shared with the request
			r.Labels[i].Value = value
		}
	}
}

// ScrubReasons removes secrets from the reasons of a verdict.
func ScrubReasons(secrets *redact.Secrets, reasons []metric.Reason) {
	for i := range reasons {
		reasons[i].Text = secrets.Sweep(reasons[i].Text)
	}
}

// ScrubSamples removes secrets from samples.
func ScrubSamples(secrets *redact.Secrets, samples []instrument.Sample) {
	for i := range samples {
		samples[i].Target, samples[i].Error = redact.URL(samples[i].Target), secrets.Hide(samples[i].Error)
	}
}
