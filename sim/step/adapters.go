package step

// LoRA is what adapters of the model cost: requests that name another model than
// the one that is served.
type LoRA struct {
	Slots        int     `yaml:"slots"`          // adapters that are in memory together; 0: they cost nothing
	LoadMs       float64 `yaml:"load_ms"`        // longer is a step that brings in one that is not there
	PerAdapterUs float64 `yaml:"per_adapter_us"` // longer is a step for each different one in it
}

// adapters are those in memory, the one that was used longest ago first.
type adapters struct {
	slots int
	there []*adapter
}

type adapter struct {
	name  string
	users int   // sequences in the batch
	step  int64 // the latest that it is counted in
}

// place is where a sequence's adapter is, or could be; false: every one that is
// there is in use.
func (a *adapters) place(s *seq) (at int, ok bool) {
	if s.Adapter == "" || a.slots == 0 {
		return -1, true
	}
	free := -1
	for i, one := range a.there {
		if one.name == s.Adapter {
			return i, true
		}
		if free < 0 && one.users == 0 {
			free = i
		}
	}
	if len(a.there) < a.slots {
		return len(a.there), true
	}
	return free, free >= 0
}

// bringIn gives a sequence that is let in its adapter. It says whether that had to
// be loaded.
func (a *adapters) bringIn(s *seq) (loaded bool) {
	i, _ := a.place(s)
	if i < 0 {
		return false
	}
	one := &adapter{name: s.Adapter}
	if i < len(a.there) {
		if a.there[i].name == s.Adapter {
			one = a.there[i]
		}
		a.there = append(a.there[:i], a.there[i+1:]...)
	}
	loaded = one.step == 0
	a.there = append(a.there, one)
	one.users++
	one.step = max(one.step, 1)
	s.adapter = one
	return loaded
}

// leave is called when a sequence leaves the batch.
func (a *adapters) leave(s *seq) {
	if s.adapter != nil {
		s.adapter.users--
		s.adapter = nil
	}
}

// different counts the adapters of sequences, in the step of that number.
func different(planned []*seq, step int64) (n int) {
	for _, s := range planned {
		if a := s.adapter; a != nil && a.step != step {
			a.step = step
			n++
		}
	}
	return n
}
