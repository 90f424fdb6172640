package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// A segment is a part of the store: a data file, to which records are only appended, and an index file with an item of
// fixed size for each.
//
// A record of the data file is a line of JSON that begins with a key, and the body that it names, if it names one:
//
//	{"key":"https://example.com","good":{"status":200,…}}
//	User-agent: *
//	Disallow: /private/
//
// It is a set, or an answer that another has superseded.
type segment struct {
	number      uint32 // from 1 on; later segments have higher numbers
	data, index *os.File
	size        int64 // of the data file
	items       int64 // in the index file
	needed      int64 // bytes of the data file
	damaged     int64 // items that were not sound when it was opened
}

const (
	dataSuffix  = ".data"
	indexSuffix = ".index"
	damaged     = "damaged" // begins the names of files that were set aside
)

// openSegment opens the files of a segment. A data file without an index file is a damaged segment, since a new segment
// has its index file first, and that is also removed last.
func openSegment(dir string, number uint32, flag int) (*segment, error) {
	name := filepath.Join(dir, fmt.Sprintf("%08d", number))
	index, err := os.OpenFile(name+indexSuffix, flag, 0o600)
	if err != nil {
		return nil, err
	}
	data, err := os.OpenFile(name+dataSuffix, flag, 0o600)
	if err != nil {
		return nil, errors.Join(err, index.Close())
	}
	s := &segment{number: number, data: data, index: index}
	dataInfo, dataErr := data.Stat()
	indexInfo, indexErr := index.Stat()
	if err := errors.Join(dataErr, indexErr); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.size, s.items = dataInfo.Size(), indexInfo.Size()/itemSize // of an item that a crash has cut off there is less
	s.damaged = s.items
	return s, nil
}

func (s *segment) close() error { return errors.Join(s.data.Close(), s.index.Close()) }

// bytes is the size of both files.
func (s *segment) bytes() int64 { return s.size + s.items*itemSize }

// read returns a record as it is on disk.
func (s *segment) read(r record) ([]byte, error) {
	b := make([]byte, r.bytes())
	_, err := s.data.ReadAt(b, int64(r.offset))
	return b, err
}

// append writes data, and the items of it with their offsets in data, to the end of the files. It does not count
// them yet. The data is on disk before the items are. After an error the files are as before.
func (s *segment) append(data []byte, items []item) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.index.Truncate(s.items*itemSize), s.data.Truncate(s.size))
		}
	}()
	index := make([]byte, 0, len(items)*itemSize)
	for i := range items {
		items[i].segment = s.number
		items[i].offset += uint32(s.size)
		index = items[i].appendTo(index)
	}
	if _, err := s.data.WriteAt(data, s.size); err != nil {
		return err
	}
	if err := s.data.Sync(); err != nil {
		return err
	}
	if _, err := s.index.WriteAt(index, s.items*itemSize); err != nil {
		return err
	}
	return s.index.Sync()
}

// scan calls f with the items that are sound, until it returns false.
func (s *segment) scan(f func(item) bool) error {
	const chunk = 4096
	b := make([]byte, chunk*itemSize)
	for n := int64(0); n < s.items; n += chunk {
		some := b[:min(chunk, s.items-n)*itemSize]
		read, err := s.index.ReadAt(some, n*itemSize)
		if err != nil && err != io.EOF { // EOF: the file was cut off since it was opened
			return err
		}
		clear(some[read:])
		for ; len(some) > 0; some = some[itemSize:] {
			it, ok := parseItem(some[:itemSize])
			it.segment = s.number
			sound := ok && it.kind <= forget && int64(it.offset)+it.bytes() <= s.size
			if sound && !f(it) {
				return nil
			}
		}
	}
	return nil
}

// A kind says what a record is.
type kind byte

const (
	originSet kind = iota + 1 // of a robots.txt
	otherSet
	answer // superseded
	forget // no record: the key has no set any more
)

// A place is where a record begins.
type place struct{ segment, offset uint32 }

// A record says where one is, and what its line names.
type record struct {
	place
	line, body uint32 // their lengths
	sum        uint32 // the CRC-32C of the line
	kind       kind
	text       id // of the body
}

// bytes is the length of the line and the body.
func (r *record) bytes() int64 { return int64(r.line) + int64(r.body) }

// An item describes a record in an index file.
type item struct {
	record
	key  id    // of the line
	file id    // that the line is about, for whichever asker
	host id    // of the file, without a port
	at   int64 // when an answer was superseded, in Unix nanoseconds
}

// itemSize is the length of an item in an index file. A CRC-32C is its end.
const itemSize = 64

func (it *item) appendTo(b []byte) []byte {
	start := len(b)
	b = append(b, byte(it.kind), 0, 0, 0)
	for _, n := range []uint32{it.offset, it.line, it.body, it.sum} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	for _, n := range []id{it.key, it.file, it.host, it.text, id(it.at)} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

func parseItem(b []byte) (it item, ok bool) {
	n32 := binary.BigEndian.Uint32
	n64 := func(b []byte) id { return id(binary.BigEndian.Uint64(b)) }
	it.kind, it.offset, it.line, it.body, it.sum = kind(b[0]), n32(b[4:]), n32(b[8:]), n32(b[12:]), n32(b[16:])
	it.key, it.file, it.host, it.text, it.at = n64(b[20:]), n64(b[28:]), n64(b[36:]), n64(b[44:]), int64(n64(b[52:]))
	const sum = itemSize - 4
	return it, n32(b[sum:]) == crc32.Checksum(b[:sum], castagnoli)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
