package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// A segment is a part of the store: a data file, to which lines and bodies are only appended, and an index file
// with an item of fixed size for each line.
//
// A line of the data file is a JSON object that begins with a key:
//
//	{"key":"https://example.com","good":{"status":200,…}}
//
// It is a set, or an answer that another has superseded. The body that it names follows the line, unless the store
// had that body already. A newline follows the body.
type segment struct {
	number      uint32 // from 1 on; later segments have higher numbers
	data, index *os.File
	size        int64 // of the data file
	items       int64 // in the index file
	damaged     int64 // items that were not sound when it was opened; 1: the index file was lost
}

const (
	dataSuffix  = ".data"
	indexSuffix = ".index"
)

// openSegment opens the files of a segment.
func openSegment(dir string, number uint32, flag int) (*segment, error) {
	name := filepath.Join(dir, fmt.Sprintf("%08d", number))
	data, err := os.OpenFile(name+dataSuffix, flag, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(name + indexSuffix)
	lost := errors.Is(err, fs.ErrNotExist)
	index, err := os.OpenFile(name+indexSuffix, flag, 0o600)
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	s := &segment{number: number, data: data, index: index}
	dataInfo, dataErr := data.Stat()
	indexInfo, indexErr := index.Stat()
	if err := errors.Join(dataErr, indexErr); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.size, s.items = dataInfo.Size(), indexInfo.Size()/itemSize // of an item that a crash has cut off there is less
	if s.damaged = s.items; lost && s.size > 0 {
		s.damaged = 1
	}
	return s, nil
}

func (s *segment) close() error { return errors.Join(s.data.Close(), s.index.Close()) }

// bytes is the size of both files.
func (s *segment) bytes() int64 { return s.size + s.items*itemSize }

// read returns bytes of the data file.
func (s *segment) read(offset, length uint32) ([]byte, error) {
	if s == nil { // it has been removed, but a damaged index file did not say that this was needed
		return nil, os.ErrNotExist
	}
	b := make([]byte, length)
	_, err := s.data.ReadAt(b, int64(offset))
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
			sound := ok && int64(it.offset)+int64(it.line)+int64(it.body) <= s.size
			if sound && !f(it) {
				return nil
			}
		}
	}
	return nil
}

// A kind says what a line is.
type kind byte

const (
	originSet kind = iota + 1 // of a robots.txt, for all of its clients
	otherSet
	answer // superseded
	forget // no line: the key has no set any more
	orphan // no line: there is only a body
)

// An id is a part of a SHA-256: of a key, a file, a host or a body. Zero is none.
type id uint64

func idOf(text string) id {
	sum := sha256.Sum256([]byte(text))
	return id(binary.BigEndian.Uint64(sum[:]))
}

// bodyID returns the id of the body with a digest in hex; zero without one.
func bodyID(digest string) id {
	n, _ := strconv.ParseUint(digest[:min(16, len(digest))], 16, 64)
	return id(n)
}

// A place is where something begins in a data file.
type place struct{ segment, offset uint32 }

// An item describes a line of a data file and the body after it.
type item struct {
	kind       kind
	hasBody    bool   // the body that the line names follows it
	place             // of the line
	line, body uint32 // their lengths
	sum        uint32 // the CRC-32C of the line

	key  id // of the line
	file id // that the line is about; the key of its set for all crawlers
	host id // of the file, without a port
	text id // the body that the line names, wherever it is

	at int64 // when an answer was superseded, in Unix nanoseconds
}

// end is where the line ends, and the body begins if it has one.
func (it *item) end() place { return place{it.segment, it.offset + it.line} }

// itemSize is the length of an item in an index file. A CRC-32C is its end.
const itemSize = 64

func (it *item) appendTo(b []byte) []byte {
	start, flag := len(b), byte(0)
	if it.hasBody {
		flag = 1
	}
	b = append(b, byte(it.kind), flag, 0, 0)
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
	it = item{kind: kind(b[0]), hasBody: b[1] == 1, line: n32(b[8:]), body: n32(b[12:]), sum: n32(b[16:])}
	it.offset = n32(b[4:])
	it.key, it.file, it.host, it.text, it.at = n64(b[20:]), n64(b[28:]), n64(b[36:]), n64(b[44:]), int64(n64(b[52:]))
	const sum = itemSize - 4
	return it, n32(b[sum:]) == crc32.Checksum(b[:sum], castagnoli)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
