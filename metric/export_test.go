package metric

// Keeping returns an accumulator that keeps the marks of most requests at most.
func Keeping(most int) *Accumulator { return &Accumulator{maxMarks: most} }
