package predict

import "math"

// factor returns the Cholesky factor l with l l' = a of a symmetric positive
// definite matrix. Pivots too small because of rounding are kept above zero.
func factor(a [][]float64) [][]float64 {
	n := len(a)
	l := make([][]float64, n)
	for i := range n {
		l[i] = make([]float64, n)
		for j := range i + 1 {
			sum := a[i][j]
			for k := range j {
				sum -= l[i][k] * l[j][k]
			}
			if i == j {
				l[i][i] = math.Sqrt(max(sum, 1e-12))
			} else {
				l[i][j] = sum / l[j][j]
			}
		}
	}
	return l
}

// solve returns x with a x = b.
func solve(a [][]float64, b []float64) []float64 {
	l := factor(a)
	n := len(b)
	x := append([]float64(nil), b...)
	for i := range n {
		for k := range i {
			x[i] -= l[i][k] * x[k]
		}
		x[i] /= l[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			x[i] -= l[k][i] * x[k]
		}
		x[i] /= l[i][i]
	}
	return x
}

// inverted is the inverse of a.
func inverted(a [][]float64) [][]float64 {
	out := make([][]float64, len(a))
	for i := range a {
		unit := make([]float64, len(a))
		unit[i] = 1
		out[i] = solve(a, unit)
	}
	return out
}

// invertedDiagonal is the diagonal of the inverse of a.
func invertedDiagonal(a [][]float64) []float64 {
	out := make([]float64, len(a))
	for i, row := range inverted(a) {
		out[i] = row[i]
	}
	return out
}
