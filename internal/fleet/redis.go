package fleet

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"robotsgate/policy/pace"
)

// Bounds of what is stored beside the snapshots. Larger values in the store count as absent.
const (
	maxValue        = maxBody + 64<<10 // of a scope, sealed
	maxGates        = 1000
	maxGateID       = 128
	maxAnnouncement = 4 << 10
	maxNotice       = 1 << 10

	noticesTTL = time.Hour
)

// scripts has one Lua script for each method of a [server]. They use the commands DEL, GET, HDEL, HGET,
// HGETALL, HSET, HSTRLEN, PEXPIRE, SET, TIME, XADD, XRANGE, and XREVRANGE.
//
//go:embed scripts/*.lua
var scripts embed.FS

var (
	loadScript     = newScript("load")
	saveScript     = newScript("save")
	acquireScript  = newScript("acquire")
	renewScript    = newScript("renew")
	releaseScript  = newScript("release")
	reserveScript  = newScript("reserve")
	notifyScript   = newScript("notify")
	noticesScript  = newScript("notices")
	announceScript = newScript("announce")
	checkScript    = newScript("check") // for Check
)

func newScript(name string) *rueidis.Lua {
	var text []byte
	for _, file := range []string{"lib", name} {
		data, err := scripts.ReadFile("scripts/" + file + ".lua")
		if err != nil {
			panic(err) // the file is part of the program
		}
		text = append(text, data...)
	}
	return rueidis.NewLuaScript(string(text))
}

// A redisServer is a [server] that is reached with rueidis. Its keys are
//
//	NAME:s              a snapshot: a hash of version (v), sealed set (r), and body (b); or an origin's sealed pauses (r)
//	NAME:l              a lease: its number and the gate
//	NAME:p              the last starts with one key, such as an origin
//	PREFIX:{fleet}:n    the stream of notices
//	PREFIX:{fleet}:g    the hash of the gates
type redisServer struct {
	client     rueidis.Client
	fleet      string        // names of the keys of the whole fleet begin with it
	noticesTTL time.Duration // since the last notice
	stop       func()
}

// call runs a script and returns its answer.
func (s *redisServer) call(ctx context.Context, script *rueidis.Lua, keys []string, args ...string) (rueidis.RedisMessage, error) {
	answer, err := script.Exec(ctx, s.client, keys, args).ToMessage()
	if err != nil {
		return answer, serverError(err)
	}
	return answer, nil
}

// userName is where a server names its user.
var userName = regexp.MustCompile(`\bUser \S+ has\b`)

// An answerError is an error with which the store has answered, so that its connection works.
type answerError string

func (e answerError) Error() string { return string(e) }

// serverError returns errWrongType for the store's WRONGTYPE. It cuts other errors of the store to 200 bytes,
// without what the gate has sent, and returns all others as they are.
func serverError(err error) error {
	if answer, ok := rueidis.IsRedisErr(err); ok {
		text := answer.Error()
		if strings.HasPrefix(text, "WRONGTYPE") {
			return errWrongType
		}
		// What follows is the number of the script, or what the gate has sent: its password, perhaps.
		text, _, _ = strings.Cut(text, " script: ")
		text, _, _ = strings.Cut(text, "with args beginning with")
		text = userName.ReplaceAllString(text, "the user has")
		if strings.HasPrefix(text, "The user executing the script can't") {
			text = "NOPERM " + text // which Redis 7.0 leaves out
		}
		return answerError(text[:min(len(text), 200)])
	}
	return err
}

var errAnswer = errors.New("the store's answer has not the form that the scripts have")

// list runs a script and returns the elements of its answer, of which there must be at least so many. A nil
// element is absent.
func (s *redisServer) list(ctx context.Context, least int, script *rueidis.Lua, keys []string, args ...string) ([][]byte, error) {
	answer, err := s.call(ctx, script, keys, args...)
	if err != nil {
		return nil, err
	}
	elements, err := answer.ToArray()
	if err != nil || len(elements) < least {
		return nil, errAnswer
	}
	all := make([][]byte, len(elements))
	for i := range elements {
		if elements[i].IsNil() {
			continue
		}
		if all[i], err = elements[i].AsBytes(); err != nil {
			return nil, errAnswer
		}
		if all[i] == nil {
			all[i] = []byte{}
		}
	}
	return all, nil
}

// number returns a number that a script has returned as text.
func number(text []byte) (int64, error) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 || n > 9e15 {
		return 0, errAnswer
	}
	return n, nil
}

// yes reports whether a script has returned 1.
func yes(answer rueidis.RedisMessage, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := answer.ToInt64()
	if err != nil || n != 0 && n != 1 {
		return false, errAnswer
	}
	return n == 1, nil
}

// micros returns a duration in whole microseconds, not more than ten years.
func micros(d time.Duration) string {
	const most = 10 * 365 * 24 * time.Hour
	return strconv.FormatInt(max(0, min(d, most)).Microseconds(), 10)
}

// millis returns a time to live, which is at least a millisecond.
func millis(d time.Duration) string {
	return strconv.FormatInt(max(1, d.Milliseconds()), 10)
}

func (s *redisServer) load(ctx context.Context, name string, withBody bool) (stored, error) {
	flag := "0"
	if withBody {
		flag = "1"
	}
	got, err := s.list(ctx, 1, loadScript, []string{name + ":s"}, strconv.Itoa(maxValue), flag)
	if err != nil {
		return stored{}, err
	}
	at, err := number(got[0])
	now := time.Duration(at) * time.Microsecond
	if err != nil || len(got) == 1 {
		return stored{now: now}, err
	}
	if len(got) != 4 || got[2] == nil || len(got[2]) > maxValue || len(got[3]) > maxValue {
		return stored{}, errAnswer
	}
	version, err := number(got[1])
	if err != nil {
		return stored{}, err
	}
	return stored{value{got[2], got[3]}, version, now}, nil
}

func (s *redisServer) save(ctx context.Context, name string, version int64, v value, ttl time.Duration) (bool, error) {
	if len(v.sealed) > maxValue || len(v.body) > maxValue {
		return false, fmt.Errorf("%w: more than %d bytes", errTooLong, maxValue)
	}
	args := []string{strconv.FormatInt(version, 10), millis(ttl), strconv.Itoa(maxValue), string(v.sealed)}
	if v.body != nil {
		args = append(args, string(v.body))
	}
	return yes(s.call(ctx, saveScript, []string{name + ":s"}, args...))
}

func (s *redisServer) acquire(ctx context.Context, name, gate string, ttl time.Duration) (int64, error) {
	answer, err := s.call(ctx, acquireScript, []string{name + ":l"}, gate, millis(ttl))
	if err != nil {
		return 0, err
	}
	text, err := answer.ToString()
	if err != nil {
		return 0, errAnswer
	}
	return number([]byte(text))
}

func (s *redisServer) renew(ctx context.Context, name string, fence int64, ttl time.Duration) (bool, error) {
	return yes(s.call(ctx, renewScript, []string{name + ":l"}, strconv.FormatInt(fence, 10), millis(ttl)))
}

func (s *redisServer) release(ctx context.Context, name string, fence int64) error {
	_, err := yes(s.call(ctx, releaseScript, []string{name + ":l"}, strconv.FormatInt(fence, 10)))
	return err
}

func (s *redisServer) reserve(ctx context.Context, name string, r pace.Reservation) (pace.Grant, error) {
	since, longest := "-1", "-1"
	if r.Since >= 0 {
		since = micros(r.Since)
	}
	if r.Longest >= 0 {
		longest = micros(r.Longest)
	}
	got, err := s.list(ctx, 3, reserveScript, []string{name + ":p"}, micros(roundUp(r.Interval)), strconv.Itoa(r.Starts), micros(r.Step), strconv.Itoa(r.Own),
		since, longest, micros(roundUp(r.Memory)), strconv.FormatInt(max(0, r.Returned.Microseconds()), 10), strconv.Itoa(r.Missed))
	if err != nil {
		return pace.Grant{}, err
	}
	wait, err1 := number(got[0])
	start, err2 := number(got[1])
	left, err3 := number(got[2])
	g := pace.Grant{Wait: time.Duration(wait) * time.Microsecond, Start: time.Duration(start) * time.Microsecond, Left: int(left)}
	if err := errors.Join(err1, err2, err3); err != nil || start != 0 && g.Wait > r.Longest {
		return pace.Grant{}, errAnswer
	}
	return g, nil
}

// roundUp returns a duration in whole microseconds that is not shorter.
func roundUp(d time.Duration) time.Duration {
	return min(d, math.MaxInt64-time.Microsecond) + time.Microsecond - 1
}

func (s *redisServer) notify(ctx context.Context, notice []byte) error {
	if len(notice) > maxNotice {
		return fmt.Errorf("%w: a notice of more than %d bytes", errTooLong, maxNotice)
	}
	_, err := yes(s.call(ctx, notifyScript, []string{s.fleet + "n"}, string(notice), strconv.Itoa(maxNotices), millis(s.noticesTTL)))
	return err
}

// position is the form of a stream's ids.
var position = regexp.MustCompile(`^[0-9]{1,20}-[0-9]{1,20}$`)

func (s *redisServer) notices(ctx context.Context, after string) ([][]byte, string, error) {
	got, err := s.list(ctx, 1, noticesScript, []string{s.fleet + "n"}, after, strconv.Itoa(maxNotices), strconv.Itoa(maxNotice))
	if err != nil {
		return nil, "", err
	}
	if len(got) > 1+maxNotices || !position.Match(got[0]) {
		return nil, "", errAnswer
	}
	for _, notice := range got[1:] {
		if notice == nil || len(notice) > maxNotice {
			return nil, "", errAnswer
		}
	}
	return got[1:], string(got[0]), nil
}

func (s *redisServer) announce(ctx context.Context, id string, text []byte, keep time.Duration) (map[string][]byte, time.Time, error) {
	if len(id) > maxGateID || len(text) > maxAnnouncement {
		return nil, time.Time{}, fmt.Errorf("%w: an id of more than %d bytes, or an announcement of more than %d", errTooLong, maxGateID, maxAnnouncement)
	}
	got, err := s.list(ctx, 3, announceScript, []string{s.fleet + "g"}, id, string(text), millis(keep),
		strconv.Itoa(maxGates), strconv.Itoa(maxAnnouncement))
	if err != nil {
		return nil, time.Time{}, err
	}
	if len(got)%2 == 0 || len(got) > 2*maxGates+3 {
		return nil, time.Time{}, errAnswer
	}
	now, err := number(got[0])
	if err != nil {
		return nil, time.Time{}, err
	}
	gates := make(map[string][]byte, len(got)/2)
	for i := 1; i < len(got); i += 2 {
		if got[i] == nil || got[i+1] == nil || len(got[i]) > maxGateID || len(got[i+1]) > maxAnnouncement {
			return nil, time.Time{}, errAnswer
		}
		gates[string(got[i])] = got[i+1]
	}
	return gates, time.UnixMicro(now), nil
}

func (s *redisServer) close() { s.stop() }
