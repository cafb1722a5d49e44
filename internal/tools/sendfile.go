package tools

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"countersign/internal/canon"
)

func (w *World) carryFile(ctx context.Context, t *Tool, r *Request, s Sending, vars map[string]any) Outcome {
	if r.Collect != nil {
		return w.carryCollect(ctx, t, r, vars)
	}
	pin, err := pinText(s.Pin)
	if err != nil {
		return Outcome{}.as(NotDone, ClassBug, err.Error())
	}
	lock, err := w.lockEffect(s.Effect)
	if errors.Is(err, errLocked) {
		return Outcome{}.as(Unknown, ClassUnknown, err.Error()).coded(CodeStillRunning)
	}
	if err != nil {
		return Outcome{}.as(NotDone, ClassTransient, "nothing was written: "+err.Error())
	}
	defer lock.Close()
	g := r.target(s.Effect)
	touched, err := g.put(ctx, pin)
	switch {
	case errors.Is(err, errPinChanged):
		return Outcome{}.as(NotDone, ClassTransient, err.Error()).coded(CodePinChanged)
	case err != nil && !touched:
		return Outcome{}.as(NotDone, fileClass(err), "nothing was written: "+err.Error())
	case err != nil:
		return Outcome{}.as(Unknown, ClassUnknown, err.Error())
	}
	return t.confirm(ctx, Outcome{}, t.code.returns, g.answer(vars, w.now(), s.mask))
}

func (r *Request) target(effect string) target {
	g := target{root: r.Root, path: r.Path, effect: effect}
	if r.Content != nil {
		g.content = []byte(*r.Content)
	}
	return g
}

// answer is the output of a file that is written.
//
// Where the content holds a sensitive value its digest is not told: it would
// help in guessing the value.
func (t target) answer(vars map[string]any, at time.Time, hide *mask) answer {
	digest := t.digest()
	if len(hide.alone) > 0 {
		digest = ""
	}
	out := map[string]any{"path": t.path, "digest": digest, "size": float64(len(t.content))}
	a := answer{what: "the file is written", natural: out, vars: map[string]any{"params": vars["params"], "config": vars["config"], "body": out, "result": map[string]any{"body": out}}}
	a.receipt = Receipt{At: at, ExternalRef: t.path[:min(len(t.path), referenceMax)], BodyDigest: digest}
	a.receipt.Body, _ = canon.Marshal(out) // our own small object
	return a
}

func fileClass(err error) string {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EROFS) {
		return ClassPermanent
	}
	if strings.Contains(err.Error(), "path escapes") { // os.Root has no sentinel for it
		return ClassPermanent
	}
	return ClassTransient
}

func (w *World) carryCollect(ctx context.Context, t *Tool, r *Request, vars map[string]any) Outcome {
	v, err := collect(ctx, r.Root, *r.Collect)
	if err != nil {
		class := fileClass(err)
		if _, ok := errors.AsType[*collectError](err); ok {
			class = ClassPermanent
		}
		return Outcome{}.as(Failed, class, err.Error())
	}
	a := answer{what: "the files were read", natural: v, receipt: Receipt{At: w.now()}}
	a.vars = map[string]any{"params": vars["params"], "config": vars["config"], "body": v, "result": map[string]any{"body": v}}
	if d, err := canon.DigestOf(v); err == nil {
		a.receipt.BodyDigest = d
	}
	return t.confirm(ctx, Outcome{}, t.code.returns, a)
}
