package wire

import "testing"

func TestMarshal(t *testing.T) {
	got, err := Marshal(map[string]string{"a": "<b> & \"c\"\n"})
	if want := `{"a":"<b> & \"c\"\n"}`; string(got) != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if _, err := Marshal(func() {}); err == nil {
		t.Error("a function has no JSON")
	}
}
