package target

import (
	"slices"

	"tacho"
	"tacho/instrument"
	"tacho/internal/redact"
	"tacho/metric"
	"tacho/plan"
)

// Learn adds the secrets of the plan and of the environment to those that are
// hidden.
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

// Scrub takes secrets out of a record: servers like to quote a key they do not
// like.
func Scrub(secrets *redact.Secrets, r *tacho.Record) {
	if r.Failure != nil {
		r.Failure.Message = secrets.Hide(r.Failure.Message)
	}
	r.Finish, r.Text, r.Said = secrets.Hide(r.Finish), secrets.Hide(r.Text), secrets.Hide(r.Said)
	r.ID, r.Endpoint = secrets.Sweep(r.ID), secrets.Sweep(r.Endpoint)
	for i, l := range r.Labels {
		if value := secrets.Sweep(l.Value); value != l.Value {
			r.Labels = slices.Clone(r.Labels) // its request has them too
			r.Labels[i].Value = value
		}
	}
}

// ScrubReasons takes secrets out of what is known of a level.
func ScrubReasons(secrets *redact.Secrets, reasons []metric.Reason) {
	for i := range reasons {
		reasons[i].Text = secrets.Sweep(reasons[i].Text)
	}
}

// ScrubSamples takes secrets out of readings.
func ScrubSamples(secrets *redact.Secrets, samples []instrument.Sample) {
	for i := range samples {
		samples[i].Target, samples[i].Error = redact.URL(samples[i].Target), secrets.Hide(samples[i].Error)
	}
}
