package engine

import (
	"slices"
	"strconv"
	"strings"

	"countersign/internal/nearest"
	"countersign/internal/problem"
)

// Window is an instant around a durable commit at which a process may die.
type Window struct {
	Name  string
	Of    string // which of a step's commits it is around
	Means string // what is durable and what has happened when a process dies here
}

// Windows is every instant at which the engine calls Options.Crash, in the
// order an approved action passes them.
var Windows = []Window{
	{"before", "checkpoint", "nothing of the step has begun"},
	{"before-propose", "proposal", "the parameters are evaluated, nothing is asked of anybody"},
	{"before-propose-commit", "proposal", "preview and precondition are read, the request is not durable"},
	{"after-propose-commit", "proposal", "the request, its key and the prepared effect are durable"},
	{"before-sent", "intent", "the request is approved or allowed, the facts are not read again yet"},
	{"before-sent-commit", "intent", "the facts are read again, the intent is not durable"},
	{"after-sent-commit", "intent", "the intent is durable, no byte has left"},
	{"after-effect", "effect", "the target has answered, nothing of it is recorded"},
	{"before-outcome-commit", "outcome", "the outcome is judged, not durable"},
	{"before-commit", "checkpoint", "the step's result is known, its checkpoint is not durable"},
	{"after-commit", "checkpoint", "the step's checkpoint is durable"},
}

// AnswerWindows are those around the commit of a person's answer. Whoever
// answers passes them, not a driver.
var AnswerWindows = []Window{
	{"before-answer-commit", "answer", "the answer fits the form, nothing of it is durable"},
	{"after-answer-commit", "answer", "the answer, its checkpoint and the wake-up are durable, nobody drives the run"},
}

// CrashPoint is one window of one step: where a process is to die.
type CrashPoint struct {
	Window string
	Path   string
	Pass   int // 0: the first time the step comes there
}

// Matches reports whether the engine is at the point.
func (c CrashPoint) Matches(window, path string, pass int) bool {
	return c.Window == window && c.Path == path && (c.Pass == 0 || c.Pass == pass)
}

// ParseCrash reads WINDOW:PATH[@PASS], as in "after-effect:publish@2".
func ParseCrash(s string) (CrashPoint, error) {
	window, rest, ok := strings.Cut(s, ":")
	if !ok || rest == "" {
		return CrashPoint{}, problem.New(problem.Invalid, "crash_point", "A crash point is WINDOW:PATH[@PASS], for example after-effect:publish@2; this is %q.", s)
	}
	if !knownWindow(window) {
		return CrashPoint{}, unknownWindow(window)
	}
	path, n, paged := strings.Cut(rest, "@")
	if !paged {
		return CrashPoint{Window: window, Path: path}, nil
	}
	pass, err := strconv.Atoi(n)
	if err != nil || pass < 1 || path == "" {
		return CrashPoint{}, problem.New(problem.Invalid, "crash_point", "The pass in %q must be a whole number from 1.", s)
	}
	return CrashPoint{Window: window, Path: path, Pass: pass}, nil
}

func knownWindow(name string) bool {
	return slices.ContainsFunc(allWindows(), func(w Window) bool { return w.Name == name })
}

func allWindows() []Window { return slices.Concat(Windows, AnswerWindows) }

func unknownWindow(name string) error {
	var names []string
	for _, w := range allWindows() {
		names = append(names, w.Name)
	}
	hint := ""
	if near := nearest.Word(name, names); near != "" {
		hint = " Did you mean " + near + "?"
	}
	return problem.New(problem.Invalid, "crash_point", "There is no window %q.%s The windows are %s.", name, hint, strings.Join(names, ", "))
}
