package audit

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/logtext"
)

// compare compares encode with encoding/json.
func compare(t *testing.T, r *Entry) (err error) {
	t.Helper()
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	wantErr := enc.Encode(r)
	got, err := r.json()
	switch want := logtext.JSON(line.Bytes()); {
	case (err != nil) != (wantErr != nil):
		t.Errorf("%+v: got error %v, want %v", r, err, wantErr)
	case err == nil && !bytes.Equal(got, want):
		t.Errorf("got  %swant %s", got, want)
	}
	return err
}

// A filler sets fields to random values.
type filler struct {
	*rand.Rand
	texts []string
}

func (f filler) fill(t testing.TB, v reflect.Value) {
	if f.IntN(4) == 0 {
		return // zero
	}
	switch v.Interface().(type) {
	case Place:
		return // not encoded
	case time.Time:
		v.Set(reflect.ValueOf(f.time()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				f.fill(t, field)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.IntN(4), 4))
		for i := range v.Len() {
			f.fill(t, v.Index(i))
		}
	case reflect.String:
		var s strings.Builder
		for range f.IntN(4) {
			s.WriteString(f.texts[f.IntN(len(f.texts))])
		}
		v.SetString(s.String())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{1, -1, 200, math.MaxInt64, math.MinInt64, f.Int64()}[f.IntN(6)])
	case reflect.Float64:
		v.SetFloat([]float64{1, -1.5, 1e-6, 9.99e-7, -1e-9, 5e-324, 1e20, 1e21, math.MaxFloat64, f.Float64(), math.Float64frombits(f.Uint64())}[f.IntN(11)])
	default:
		t.Fatalf("a record has a %v", v.Type())
	}
}

func (f filler) time() time.Time {
	at := time.Unix(f.Int64N(1<<33), []int64{0, 1, 120_000_000, f.Int64N(1e9)}[f.IntN(4)])
	if f.IntN(20) == 0 {
		at = at.AddDate(8000, 0, 0) // RFC 3339 has four digits
	}
	return at.UTC()
}

// TestEncode sets one field after the other, and then all of them.
func TestEncode(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := filler{rand.New(rand.NewPCG(seed, 0)), hostileTexts}
	for i := range reflect.TypeFor[Entry]().NumField() {
		for range 200 {
			var r Entry
			if field := reflect.ValueOf(&r).Elem().Field(i); field.CanSet() {
				f.fill(t, field)
			}
			compare(t, &r)
		}
	}
	bad := 0
	for range 5000 {
		var r Entry
		f.fill(t, reflect.ValueOf(&r).Elem())
		if compare(t, &r) != nil {
			bad++
		}
	}
	if bad == 0 || bad > 4000 {
		t.Errorf("%d of the records can't be encoded", bad)
	}
}
