package stat

// Above is how many observations are larger than x. Observations that are kept in
// bins count as the middle of their bin.
func (d *Digest) Above(x float64) int {
	n := int64(0)
	for v := range d.kept {
		if v > x {
			n++
		}
	}
	if d.bins != nil {
		for bin, times := range d.bins.all {
			if middle(bin) > x {
				n += times
			}
		}
	}
	return int(n)
}
