package main

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	killTimes = flag.Int("kills", 5, "how often TestKill_UnderLoad kills the console")
	killSeed  = flag.Uint64("seed", 0, "seed of TestKill_UnderLoad, which it prints, to repeat its choices; 0 for a new one")
)

// Limits of one life of the console under load.
const (
	runsALife    = 12                    // started in it at most
	answersALife = 60                    // calls answered in it at most before the kill
	afterAnswer  = 50 * time.Millisecond // and the kill comes at most so much later
	answerMax    = 2 * time.Minute       // for anything that must happen at all
)

// The console serves, agents start runs of all three tool kinds and people
// decide over the API, and it is killed at random instants, while it starts,
// too. In the end every run has ended or says what it waits for, no effect
// happened twice, and nothing that was acknowledged is lost.
func TestKill_UnderLoad(t *testing.T) {
	t.Parallel()
	seed := cmp.Or(*killSeed, rand.Uint64())
	times := *killTimes
	if testing.Short() {
		times = min(times, 2)
	}
	t.Logf("%d kills; to repeat the choices: go test ./cmd/console -run TestKill_UnderLoad -kills %d -seed %d", times, times, seed)
	f := newFolder(t)
	for _, tool := range []string{"tools/shop.refund.yaml", "tools/ops.restart.yaml"} {
		f.replace(tool, "risk: high", "risk: medium") // high risks are not decided over the API
	}
	l := newLoad(f, seed)
	defer l.end()
	took := time.Second // what the start before took
	for n := range times {
		took = l.live(rand.New(rand.NewPCG(seed, 1<<32+uint64(n))), took)
	}
	s := f.serve()
	l.base.Store(new(s.ready()))
	l.end()
	l.judgeAll()
	s.stop()
	f.verify()
	f.consistent()
}

// live starts the console and kills it at a random instant: while it starts,
// or a little after it has answered a number of calls. It returns how long the
// start took, where it was seen.
func (l *load) live(r *rand.Rand, took time.Duration) time.Duration {
	l.Helper()
	l.mayOpen.Store(runsALife)
	begun := time.Now()
	s := l.serve()
	defer s.kill()
	if r.IntN(5) == 0 {
		<-time.After(time.Duration(r.Int64N(int64(took))))
		return took
	}
	l.base.Store(new(s.ready()))
	took = time.Since(begun)
	l.heard(l.answers.Load() + r.Int64N(answersALife))
	<-time.After(time.Duration(r.Int64N(int64(afterAnswer))))
	return took
}

// heard waits until so many calls were answered.
func (l *load) heard(n int64) {
	l.Helper()
	for begun := time.Now(); l.answers.Load() < n; <-time.After(time.Millisecond) {
		if time.Since(begun) > answerMax {
			l.Fatalf("%d calls are answered, and after %v no more", l.answers.Load(), answerMax)
		}
	}
}

// served is a console that serves a folder.
type served struct {
	f   *folder
	cmd *exec.Cmd
	url chan string // receives where it answers; closed when it has ended
	log string
}

// serve starts the console; the test ends it at the latest.
func (f *folder) serve() *served {
	f.Helper()
	s := &served{f: f, url: make(chan string, 1), log: filepath.Join(filepath.Dir(f.dir), "log")}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	f.ok(err)
	defer log.Close()
	s.cmd = exec.Command(f.console, "serve", "--data", f.dir, "--listen", "127.0.0.1:0", "--log-level", "warn")
	s.cmd.Stderr = log
	out, err := s.cmd.StdoutPipe()
	f.ok(err)
	f.ok(s.cmd.Start())
	f.Cleanup(func() { _ = s.cmd.Process.Kill() }) // ended already, unless the test failed
	go func() {
		defer close(s.url)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if url, ok := strings.CutPrefix(lines.Text(), "console on "); ok {
				s.url <- url
			}
		}
	}()
	return s
}

// ready waits until it answers, and returns where.
func (s *served) ready() string {
	s.f.Helper()
	select {
	case url, ok := <-s.url:
		if ok {
			return url
		}
	case <-time.After(answerMax):
	}
	s.f.Fatalf("the console does not start:\n%s", s.logged())
	return ""
}

// kill ends it with SIGKILL; it must have lived until then.
func (s *served) kill() {
	s.f.Helper()
	_ = s.cmd.Process.Kill() // an error is that it has ended, which Wait tells
	ended, ok := errors.AsType[*exec.ExitError](s.cmd.Wait())
	if !ok || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		s.f.Errorf("the console ended by itself: %v\n%s", ended, s.logged())
	}
}

// stop ends it in order.
func (s *served) stop() {
	s.f.Helper()
	s.f.ok(s.cmd.Process.Signal(syscall.SIGTERM))
	if err := s.cmd.Wait(); err != nil {
		s.f.Errorf("the console ended with %v\n%s", err, s.logged())
	}
}

// logged is the end of what it logged, in all its lives.
func (s *served) logged() string {
	raw, err := os.ReadFile(s.log)
	s.f.ok(err)
	return string(raw[max(0, len(raw)-4000):])
}
