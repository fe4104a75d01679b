// Package must ends a test at an unexpected error, so that a test says only what it expects.
package must

import "testing"

// Do ends the test if err is not nil.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns the value of a call, as in must.Get(os.ReadFile(path))(t). It ends the test if the call failed.
func Get[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
