package policy

import (
	"testing"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
)

// TestRecordOfCopy: a decision by an older copy cites the copy and the origin's latest answer.
func TestRecordOfCopy(t *testing.T) {
	rules := Robots{Settings: snapshot.Settings{MaxAge: time.Hour, MaxBytes: 1 << 20}}
	d := rules.Judge(200, []byte("User-agent: *\nDisallow: /private/\n"), canonical.Target{Path: "/private/x"}, []string{"ExampleBot", "Other"})
	older, failed := *d.Robots.Snapshot, *d.Robots.Snapshot
	older.SHA256, older.Lifetime = "older", time.Minute
	failed.Status, failed.Since, failed.Lifetime = 500, time.Unix(1, 0), -1
	older.Since = time.Time{}
	d.Robots = new(*d.Robots)
	d.Robots.Answer, d.Robots.Good = &failed, &older
	var x record.Record
	d.Record(&x)
	r := x.Robots
	if r.Instead == nil || r.Instead.Status != 500 || !r.Instead.Since.Equal(failed.Since) || r.Instead.Lifetime != nil {
		t.Errorf("latest answer: got %+v", r.Instead)
	}
	if r.Copy == nil || r.Copy.SHA256 != "older" || r.Copy.Lifetime == nil || *r.Copy.Lifetime != 60 || !r.Copy.Since.IsZero() {
		t.Errorf("copy: got %+v", r.Copy)
	}
}
