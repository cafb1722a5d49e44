package receipt_test

import (
	"bytes"
	"strings"
	"testing"

	"countersign/internal/audit/receipt"
)

func bundle(t *testing.T, receipts ...string) string {
	t.Helper()
	var out bytes.Buffer
	b, err := receipt.NewBundle(&out, "run_a")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2} {
		if err := b.Add("step", map[string]any{"n": n}); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range receipts {
		if err := b.AddReceipt([]byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.End(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestCheckBundle_WholeHolds(t *testing.T) {
	report, err := receipt.CheckBundle(strings.NewReader(bundle(t)), "")
	if err != nil || report.Run != "run_a" || report.Lines["step"] != 2 {
		t.Errorf("CheckBundle = %+v, %v", report, err)
	}
}

func TestCheckBundle_ChangedOrCut_DoesNotHold(t *testing.T) {
	whole := bundle(t)
	lines := strings.SplitAfter(whole, "\n")
	for name, text := range map[string]string{
		"empty":              "",
		"cut before the end": strings.Join(lines[:3], ""),
		"a line less":        lines[0] + lines[1] + lines[3],
		"a line twice":       lines[0] + lines[1] + lines[1] + lines[2] + lines[3],
		"two in turn":        lines[0] + lines[2] + lines[1] + lines[3],
		"a byte":             strings.Replace(whole, `"n":1`, `"n":3`, 1),
		"something after":    whole + lines[1],
		"no beginning":       strings.Join(lines[1:], ""),
		"a space":            strings.Replace(whole, `"n":1`, `"n": 1`, 1),
		"another format":     strings.Replace(whole, "bundle/1", "bundle/2", 1),
		"only an end":        lines[3],
		"a receipt of ours":  bundle(t, "{}"),
	} {
		if report, err := receipt.CheckBundle(strings.NewReader(text), ""); err == nil {
			t.Errorf("%s: it holds: %+v", name, report)
		}
	}
}
