package step

// LoRA is the cost of LoRA adapters: requests that name a model other than the
// served one.
type LoRA struct {
	Slots        int     `yaml:"slots"`          // adapters in memory at the same time; 0: adapters cost nothing
	LoadMs       float64 `yaml:"load_ms"`        // added to a step that loads an adapter
	PerAdapterUs float64 `yaml:"per_adapter_us"` // added to a step for each distinct adapter in the batch
}

// adapters are the LoRA adapters in memory, least recently used first.
type adapters struct {
	slots    int
	resident []*adapter
}

type adapter struct {
	name  string
	users int   // sequences of the batch with this adapter
	step  int64 // the last step that counted the adapter
}

// slotFor returns the slot that holds the sequence's adapter or could hold it, and
// false if every slot is in use.
func (a *adapters) slotFor(s *seq) (at int, ok bool) {
	if s.Adapter == "" || a.slots == 0 {
		return -1, true
	}
	free := -1
	for i, one := range a.resident {
		if one.name == s.Adapter {
			return i, true
		}
		if free < 0 && one.users == 0 {
			free = i
		}
	}
	if len(a.resident) < a.slots {
		return len(a.resident), true
	}
	return free, free >= 0
}

// acquire gives an admitted sequence its adapter and reports whether the adapter
// had to be loaded.
func (a *adapters) acquire(s *seq) (loaded bool) {
	i, _ := a.slotFor(s)
	if i < 0 {
		return false
	}
	one := &adapter{name: s.Adapter}
	if i < len(a.resident) {
		if a.resident[i].name == s.Adapter {
			one = a.resident[i]
		}
		a.resident = append(a.resident[:i], a.resident[i+1:]...)
	}
	loaded = one.step == 0
	a.resident = append(a.resident, one)
	one.users++
	one.step = max(one.step, 1)
	s.adapter = one
	return loaded
}

// release is called when a sequence leaves the batch.
func (a *adapters) release(s *seq) {
	if s.adapter != nil {
		s.adapter.users--
		s.adapter = nil
	}
}

// countAdapters returns the number of distinct adapters in a step.
func countAdapters(planned []*seq, step int64) (n int) {
	for _, s := range planned {
		if a := s.adapter; a != nil && a.step != step {
			a.step = step
			n++
		}
	}
	return n
}
