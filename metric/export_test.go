package metric

// Keeping is an accumulator that keeps the marks of so many requests at most.
func Keeping(most int) *Accumulator { return &Accumulator{most: most} }
