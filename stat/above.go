package stat

// Above returns the number of observations larger than x. Binned observations count as the middle of their bin.
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
