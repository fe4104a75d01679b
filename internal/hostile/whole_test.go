//go:build hostile

package hostile

const whole = true
