package audit

import "time"

// A killed gate leaves records behind its last head. To bound what an attacker can add to
// them, each head says how many records may follow it, and until when: the gate keeps
// another head before it writes more. While nothing is written the head permits none.

// lease keeps a head that permits n more records, unless the last one does. It is the
// queue's, before they are written.
func (l *Log) lease(n int) {
	number, now := l.chain.number, time.Now()
	kept := &l.head.kept
	if number+int64(n) <= kept.Limit && !now.After(kept.Until) {
		return
	}
	// Twice what has come since the last head: a gate with much to write keeps one each
	// second.
	room := max(leaseRecords, 2*(number-kept.Number+int64(n)))
	l.keepHead(Head{Limit: number + room, Until: now.Add(leaseTime).UTC()})
}

// settle keeps a head that permits no more records, once the last lease is over. It is
// the queue's, a while after records; it returns when to call it again, 0 if not.
func (l *Log) settle() (again time.Duration) {
	if wait := time.Until(l.head.kept.Until); wait > 0 {
		return wait
	}
	if l.chain.number == 0 || l.keepHead(Head{Limit: l.chain.number}) {
		return 0
	}
	return leaseTime
}

// keepHead keeps how far the chain has come, once the disk has the records. Where that
// can't be done it is said, and requests go on.
func (l *Log) keepHead(h Head) bool {
	if l.head.dir == "" {
		return true
	}
	if time.Now().Before(l.head.again) && !h.Ended {
		return false
	}
	if l.file != nil {
		if l.chain.number > l.head.kept.Number {
			l.file.sync()
		}
		h.File, h.Stream = l.file.path, l.file.stream
	} else {
		h.File, h.Stream = "-", true
	}
	h.Chain, h.Number, h.Hash, h.Time = l.chain.id, l.chain.number, string(l.chain.hash[:]), l.wrote.UTC()
	if h.Number == 0 {
		h.Time = time.Now().UTC()
	}
	err := l.head.write(h)
	if err != nil && time.Since(l.headErr) >= time.Minute {
		l.headErr = time.Now()
		l.log.Error("how far the audit log has come can't be kept; check the space and permissions of data_dir", "error", err)
	}
	return err == nil
}
