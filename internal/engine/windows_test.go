package engine_test

import (
	"os"
	"strings"
	"testing"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/store"
	"countersign/internal/testkit"
)

func TestMain(m *testing.M) {
	RunEffect()
	os.Exit(m.Run())
}

func TestEngine_Conforms(t *testing.T) {
	Conformance(t, func(t testing.TB) *store.DB { return testkit.Open(t, Lines()...) })
}

func TestParseCrash(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want engine.CrashPoint
		err  string
	}{
		{"after-effect:publish@2", engine.CrashPoint{Window: "after-effect", Path: "publish", Pass: 2}, ""},
		{"after-commit:make_plan", engine.CrashPoint{Window: "after-commit", Path: "make_plan"}, ""},
		{"after-answer-commit:ask", engine.CrashPoint{Window: "after-answer-commit", Path: "ask"}, ""},
		{"after-efect:publish", engine.CrashPoint{}, "Did you mean after-effect?"},
		{"nonsense:publish", engine.CrashPoint{}, "The windows are before,"},
		{"after-effect", engine.CrashPoint{}, "WINDOW:PATH"},
		{"after-effect:", engine.CrashPoint{}, "WINDOW:PATH"},
		{"after-effect:x@0", engine.CrashPoint{}, "whole number"},
		{"after-effect:x@two", engine.CrashPoint{}, "whole number"},
		{"after-effect:@1", engine.CrashPoint{}, "whole number"},
	} {
		got, err := engine.ParseCrash(tt.in)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("ParseCrash(%q) = %+v, %v; want %+v, %q", tt.in, got, err, tt.want, tt.err)
		}
	}
}
