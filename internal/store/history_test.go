package store

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy"
)

// TestHistory has every answer with the time it was in force, and the crawler that it bound.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := openFor(t, dir, ample)
		const o = "https://a.example"
		start := time.Now()
		bound := func(rec policy.Record, status int) policy.Record {
			rec.Bound = nil
			if status > 0 {
				rec.Bound = map[string]*policy.Snapshot{"bot": {Status: status, Fetched: time.Now()}}
			}
			return rec
		}
		confirmed := func(rec policy.Record) policy.Record {
			again := *rec.Good
			again.Fetched = time.Now()
			return policy.Record{Good: &again, Last: &again}
		}
		var rec policy.Record
		for _, step := range []func(){
			func() { rec = answered("one") },        // 0
			func() { rec = confirmed(rec) },         // 1
			func() { rec = bound(rec, 403) },        // 2
			func() { rec = bound(rec, 401) },        // 3
			func() { rec = down(rec, 503) },         // 4
			func() { rec = down(rec, 503) },         // 5
			func() { rec = down(rec, 404) },         // 6
			func() { rec = confirmed(rec) },         // 7
			func() { rec = bound(rec, 403) },        // 8
			func() { rec = down(bound(rec, 0), 0) }, // 9
			func() { rec = answered("two") },        // 10
			func() {
				d.Close()
				d = openFor(t, dir, ample)
				rec = answered("one")
			}, // 11
			func() { rec = bound(rec, 403) }, // 12
			func() { // two fetches before a save
				rec = bound(rec, 401)
				time.Sleep(time.Hour)
				rec = down(rec, 503)
			}, // 13, 14
		} {
			step()
			save(t, d, map[string]policy.Record{
				o: rec, o + ".com": answered(fmt.Sprint(time.Now())), "https://a": answered(fmt.Sprint(time.Now())),
			})
			time.Sleep(time.Hour)
		}
		defer d.Close()
		hour := func(at time.Time) int {
			if at.IsZero() {
				return -1
			}
			return int(at.Sub(start) / time.Hour)
		}
		var got []string
		history, err := d.History(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range history {
			what := fmt.Sprint(a.Snapshot.Status)
			for _, body := range []string{"one", "two"} {
				if a.Snapshot.SHA256 == policy.Digest(body) {
					what = body
				}
			}
			got = append(got, fmt.Sprintf("%d-%d %s%s, last at %d", hour(a.From), hour(a.To), what, a.Slot, hour(a.Snapshot.Fetched)))
		}
		want := []string{
			"0-10 one, last at 7",
			"2-3 403bot, last at 2",
			"3-7 401bot, last at 3",
			"4-6 503, last at 5",
			"6-7 404, last at 6",
			"8-9 403bot, last at 8",
			"9-10 0, last at 9",
			"10-11 two, last at 10",
			"11--1 one, last at 11",
			"12-13 403bot, last at 12",
			"13--1 401bot, last at 13",
			"14--1 503, last at 14",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if got, ok := d.Load(t.Context(), o); !ok || string(got.Body) != "one" {
			t.Errorf("got %+v, %v", got, ok)
		}
		if none, err := d.History("https://unknown.example"); err != nil || len(none) > 0 {
			t.Errorf("got %v, %v", none, err)
		}
		sound(t, d)
	})
}

// TestHistoryClockSetBack: no answer ends before it begins, and none
// overwrites another.
func TestHistoryClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openFor(t, t.TempDir(), ample)
		defer d.Close()
		const o = "https://a.example"
		for i := range 5 {
			rec := answered(robots(i, 100))
			if i == 1 {
				rec.Good.Fetched = time.Now().Add(-time.Hour)
			}
			save(t, d, map[string]policy.Record{o: rec}) // the fake clock stands still
		}
		history, err := d.History(o)
		if err != nil || len(history) != 5 {
			t.Errorf("got %v, %v", history, err)
		}
		for _, a := range history {
			if !a.To.IsZero() && a.To.Before(a.From) {
				t.Errorf("from %v to %v", a.From, a.To)
			}
		}
		sound(t, d)
	})
}

// TestHistoryNoSlot: the answer for crawlers without a slot differs from one with the same status.
func TestHistoryNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openFor(t, t.TempDir(), ample)
		defer d.Close()
		const o = "https://a.example"
		for _, shared := range []bool{false, true} {
			save(t, d, map[string]policy.Record{o: {Bound: map[string]*policy.Snapshot{"x": {Status: 403, Fetched: time.Now(), NoSlot: shared}}}})
			time.Sleep(time.Hour)
		}
		if all, err := d.History(o); err != nil || len(all) != 2 || all[0].Snapshot.NoSlot || !all[1].Snapshot.NoSlot {
			t.Errorf("got %+v, %v", all, err)
		}
	})
}

// TestHistoryScopes: the history has the answers for configured crawlers and for other
// clients, and marks which is which. That of the tdmrep.json is a history of its own.
func TestHistoryScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := openFor(t, dir, ample)
		const o = "https://a.example"
		crawlers := policy.Scope{Origin: o, Crawlers: true}.Key()
		tdmrep := policy.Scope{Origin: o, TDMRep: true, Crawlers: true}.Key()
		for i := range 2 {
			save(t, d, map[string]policy.Record{
				o: answered(fmt.Sprint("others ", i)), crawlers: answered(fmt.Sprint("crawlers ", i)),
				o + ".com": answered("x"), policy.Scope{Origin: o + ".com", Crawlers: true}.Key(): answered("x"),
				tdmrep: answered(fmt.Sprint("tdmrep ", i)),
			})
			time.Sleep(time.Hour)
		}
		d.Close()
		d = openFor(t, dir, ample)
		defer d.Close()
		all, err := d.History(o)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, a := range all {
			for _, body := range []string{"others 0", "others 1", "crawlers 0", "crawlers 1"} {
				if a.Snapshot.SHA256 == policy.Digest(body) {
					got[fmt.Sprint(body, " ", a.Crawlers, " ", a.To.IsZero())] = true
				}
			}
		}
		for _, want := range []string{"others 0 false false", "others 1 false true", "crawlers 0 true false", "crawlers 1 true true"} {
			if !got[want] {
				t.Errorf("%s: not in the history %v", want, got)
			}
		}
		if len(all) != 4 {
			t.Errorf("%d answers, want 4", len(all))
		}
		files, err := d.TDMRepHistory(o)
		if err != nil || len(files) != 2 || files[0].Snapshot.SHA256 != policy.Digest("tdmrep 0") || files[0].To.IsZero() || !files[1].Crawlers || !files[1].To.IsZero() {
			t.Errorf("tdmrep.json: got %+v, %v", files, err)
		}
		sound(t, d)
	})
}

// TestHistoryCopies: the copies that bind one token are in the history of their origin with that token,
// also after they have been forgotten, and their bodies go with the last answer that names them.
func TestHistoryCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := openFor(t, dir, Limits{Keep: 24 * time.Hour, Bytes: 64 << 20})
		const o = "https://a.example"
		start := time.Now()
		scope := policy.Scope{Origin: o, Crawlers: true}
		key := scope.Key()
		scope.Slot = "/bot"
		copyKey := scope.Key()
		other := policy.Scope{Origin: o + ".com", Crawlers: true, Slot: "/bot"}.Key()
		// index is the record beside copies.
		index := func(rec policy.Record) policy.Record {
			if rec.Good == nil {
				return policy.Record{Bound: map[string]*policy.Snapshot{"x": {Status: 403, Fetched: time.Now()}}}
			}
			return policy.Record{Copies: map[string]*policy.Snapshot{"bot": rec.Good}}
		}
		save(t, d, map[string]policy.Record{key: answered("for all"), other: answered("other")})
		time.Sleep(time.Hour)
		for _, body := range []string{"one", "two"} {
			rec := answered(body)
			records := map[string]policy.Record{key: index(rec), copyKey: rec}
			time.Sleep(time.Minute) // it is saved late
			save(t, d, records)
			time.Sleep(time.Hour - time.Minute)
		}
		save(t, d, map[string]policy.Record{key: index(policy.Record{}), copyKey: {}})
		save(t, d, map[string]policy.Record{copyKey: {}}) // it is gone already
		if _, ok := d.Load(t.Context(), copyKey); ok {
			t.Error("a forgotten copy is found")
		}
		if u := d.Usage(); u.Origins != 1 {
			t.Errorf("%d origins, want 1: copies do not count", u.Origins)
		}
		sound(t, d)
		time.Sleep(time.Hour)
		d.Close()
		d = openFor(t, dir, Limits{Keep: 24 * time.Hour, Bytes: 64 << 20})
		defer func() { d.Close() }()
		var got []string
		all, err := d.History(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			what := fmt.Sprint(a.Snapshot.Status)
			for _, body := range []string{"for all", "one", "two"} {
				if a.Snapshot.SHA256 == policy.Digest(body) {
					what = body
				}
			}
			if !a.Crawlers {
				t.Errorf("%s: not for configured crawlers", what)
			}
			to := "now"
			if !a.To.IsZero() {
				to = fmt.Sprint(a.To.Sub(start))
			}
			got = append(got, fmt.Sprint(what, " ", a.Slot, " ", a.From.Sub(start), " to ", to))
		}
		want := []string{"for all  0s to 1h0m0s", "one /bot 1h0m0s to 2h0m0s", "two /bot 2h0m0s to 3h0m0s", "403 x 3h0m0s to now"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		time.Sleep(26 * time.Hour)
		d.sweep()
		for _, body := range []string{"for all", "one", "two"} {
			if n := d.Length(policy.Digest(body)); n != 0 {
				t.Errorf("%q is still there", body)
			}
		}
		sound(t, d)
	})
}

// TestOrigins lists the origins of a host on all ports, but not those of longer names.
func TestOrigins(t *testing.T) {
	dir := t.TempDir()
	d := openFor(t, dir, ample)
	for _, body := range []string{"old", "new"} {
		records := map[string]policy.Record{}
		for _, origin := range []string{"https://a.example", "http://a.example:8080", "https://a.example.com", "https://b.a.example"} {
			records[origin] = answered(body)
		}
		records[policy.Scope{Origin: "http://a.example", Crawlers: true}.Key()] = answered(body)
		save(t, d, records)
	}
	d.Close()
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for host, want := range map[string][]string{
		"a.example":   {"http://a.example", "http://a.example:8080", "https://a.example"},
		"b.a.example": {"https://b.a.example"},
		"a.exampl":    nil,
		"example":     nil,
	} {
		if got, err := r.Origins(host); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", host, got, err, want)
		}
	}
}
