package publish

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tacho-bench/tacho/internal/exposition"
)

// Push sends metrics to the collector until stop is called, and then once more, even if ctx is done. Only this last
// time waits for a collector that does not answer. onError is called for the first of consecutive failures.
func (b *Exporter) Push(ctx context.Context, onError func(error)) (stop func()) {
	ctx = context.WithoutCancel(ctx)
	quit := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(b.to.Every)
		defer tick.Stop()
		failing := false
		for open := true; open; {
			select {
			case <-tick.C:
			case <-quit:
				open = false
			}
			err := b.pushOnce(ctx)
			if err != nil && !failing {
				onError(err)
			}
			failing = err != nil
		}
	})
	return sync.OnceFunc(func() {
		close(quit)
		running.Wait()
	})
}

func (b *Exporter) pushOnce(ctx context.Context) error {
	o := exposition.Options{Began: b.began, Now: b.to.Now(), Exponential: b.to.Exponential}
	return b.to.send(ctx, exposition.OTLP(b.resource(), b.export(), o))
}

// newInstance returns the service.instance.id of a process: a random UUID. The name of the run would not do, because
// two machines can start runs with the same name.
func newInstance() string {
	var id [16]byte
	_, _ = rand.Read(id[:])                         // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // bits of a random UUID: version 4, variant 1
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// resource returns the attributes that identify the run. The user's attributes replace ours.
func (b *Exporter) resource() *exposition.Resource {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []exposition.Attribute{
		{Key: "service.name", Value: "tacho"},
		{Key: "service.version", Value: b.about.Version},
		{Key: "service.instance.id", Value: b.instance},
		{Key: "gen_ai.operation.name", Value: b.about.Operation},
		{Key: "gen_ai.provider.name", Value: b.about.Provider},
		{Key: "gen_ai.request.model", Value: b.about.Model},
	}
	for _, l := range b.run {
		out = append(out, exposition.Attribute{Key: "tacho.run.name", Value: l.Value})
	}
	for _, l := range b.about.Labels {
		if l.Value != "" && l.Name != "version" && l.Name != "model" {
			out = append(out, exposition.Attribute{Key: "tacho." + l.Name, Value: l.Value})
		}
	}
	out = slices.DeleteFunc(out, func(a exposition.Attribute) bool { return a.Value == "" })
	for _, given := range b.to.Resource {
		out = slices.DeleteFunc(out, func(a exposition.Attribute) bool { return a.Key == given.Key })
		out = append(out, given)
	}
	return &exposition.Resource{Attributes: out, Scope: "github.com/tacho-bench/tacho", Version: b.about.Version}
}
