package ranks

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

// TestTablesAreThePublishedOnes checks that each table, written as a tiktoken file, is
// OpenAI's published file. tiktoken verifies its downloads with the same checksums.
func TestTablesAreThePublishedOnes(t *testing.T) {
	for name, want := range map[string]string{
		R50K:   "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
		P50K:   "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
		CL100K: "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
		O200K:  "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
	} {
		var file bytes.Buffer
		write := func(table string, first int) {
			tokens := must.Get(Tokens(table))(t)
			for i, token := range tokens {
				fmt.Fprintf(&file, "%s %d\n", base64.StdEncoding.EncodeToString(token.Text), first+i)
			}
		}
		if name == P50K {
			write(R50K, 0)
			write(P50K, FirstP50K)
		} else {
			write(name, 0)
		}
		sum := sha256.Sum256(file.Bytes())
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s: the file has the sum %s, want %s", name, got, want)
		}
	}
}

func TestPack(t *testing.T) {
	want := []Token{{[]byte("a"), 0}, {Text: []byte{}}, {bytes.Repeat([]byte("long"), 100), 399}}
	packed := must.Get(Pack(want))(t)
	got := must.Get(unpack(packed))(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Unpack(Pack()) (-want +got)\n%s", diff)
	}
	for _, broken := range [][]byte{nil, packed[:len(packed)-1], packed[:4]} {
		if _, err := unpack(broken); err == nil {
			t.Errorf("Unpack(%x): no error", broken)
		}
	}
	packed = must.Get(Pack([]Token{{[]byte("ab"), 2}}))(t)
	if _, err := unpack(packed); err == nil {
		t.Error("a token that is merged from itself: no error")
	}
	if _, err := Tokens("o300k_base"); err == nil {
		t.Error("a table that is not there: no error")
	}
}
