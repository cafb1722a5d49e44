package engine

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// The statuses of a question.
const (
	QuestionOpen      = "open"
	QuestionAnswered  = "answered"
	QuestionExpired   = "expired"
	QuestionWithdrawn = "withdrawn" // its run was cancelled, ended in another branch, or went on to another version
)

// Question is what a run asks people at one pass of an ask step.
type Question struct {
	Run          id.Run    `json:"run"`
	Path         string    `json:"path"`
	Pass         int       `json:"pass"`
	Status       string    `json:"status"`
	Text         string    `json:"question"`
	Roles        []string  `json:"roles"` // whoever has one of them may answer
	FormDigest   string    `json:"form_digest"`
	AnswerBy     time.Time `json:"answer_by,omitzero"` // zero: no deadline
	AskedAt      time.Time `json:"asked_at"`
	AnswerDigest string    `json:"answer_digest,omitempty"` // of the recorded output
	AnsweredBy   *Actor    `json:"answered_by,omitempty"`
	ClosedAt     time.Time `json:"closed_at,omitzero"`
}

// May reports whether somebody with the roles may answer.
func (q Question) May(roles []string) bool {
	return slices.ContainsFunc(roles, func(r string) bool { return slices.Contains(q.Roles, r) })
}

const questionColumns = `run, path, pass, status, text, roles, form_digest, answer_by, asked_at, answer_digest, answered_by, closed_at`

// errNoQuestion is also what a step that has not asked yet looks like.
var errNoQuestion = problem.New(problem.NotFound, "not_found", "The run has asked no such question.")

func scanQuestion(row scanner) (Question, error) {
	var q Question
	var roles string
	var until, closed sql.NullInt64
	var asked int64
	var by sql.NullString
	err := row.Scan(&q.Run, &q.Path, &q.Pass, &q.Status, &q.Text, &roles, &q.FormDigest, &until, &asked, &q.AnswerDigest, &by, &closed)
	if err != nil {
		return Question{}, err
	}
	q.AnswerBy, q.AskedAt, q.ClosedAt = fromNull(until), fromMicros(asked), fromNull(closed)
	if by.Valid {
		q.AnsweredBy = &Actor{}
		if err := json.Unmarshal([]byte(by.String), q.AnsweredBy); err != nil {
			return Question{}, err
		}
	}
	return q, json.Unmarshal([]byte(roles), &q.Roles)
}

// Question reads what a run asks at a step; pass 0 is the last one.
func (e *Engine) Question(ctx context.Context, q store.Querier, tenant string, run id.Run, path string, pass int) (Question, error) {
	out, err := scanQuestion(q.QueryRow(ctx, "SELECT "+questionColumns+` FROM question WHERE tenant = $1 AND run = $2 AND path = $3
		AND ($4 = 0 OR pass = $4) ORDER BY pass DESC LIMIT 1`, tenant, string(run), path, pass))
	if errors.Is(err, store.ErrNotFound) {
		return Question{}, errNoQuestion
	}
	if err != nil {
		return Question{}, fmt.Errorf("read question: %w", err)
	}
	return out, nil
}

// Questions lists everything a run has asked, in that order.
func (e *Engine) Questions(ctx context.Context, q store.Querier, tenant string, run id.Run) ([]Question, error) {
	return questionsWhere(ctx, q, "tenant = $1 AND run = $2 ORDER BY asked_at, path, pass", tenant, string(run))
}

// QuestionsMax bounds the list of what is open.
const QuestionsMax = 500

// OpenQuestions lists what runs ask now and can be answered, the longest open
// first, at most QuestionsMax. A blocked run's wait until somebody acts on it, unless only
// another branch of it is blocked.
func (e *Engine) OpenQuestions(ctx context.Context, q store.Querier, tenant string) ([]Question, error) {
	return questionsWhere(ctx, q, `tenant = $1 AND status = 'open' AND EXISTS (SELECT 1 FROM run r WHERE r.tenant = question.tenant
		AND r.id = question.run AND r.finished_at IS NULL AND (r.status <> 'blocked' OR r.waiting_for LIKE '%"kind":"input"%') AND r.cancel_reason IS NULL)
		ORDER BY asked_at, run, path LIMIT $2`, tenant, QuestionsMax)
}

func questionsWhere(ctx context.Context, q store.Querier, where string, args ...any) ([]Question, error) {
	rows, err := q.Query(ctx, "SELECT "+questionColumns+" FROM question WHERE "+where, args...)
	if err != nil {
		return nil, fmt.Errorf("list questions: %w", err)
	}
	defer rows.Close()
	var all []Question
	for rows.Next() {
		one, err := scanQuestion(rows)
		if err != nil {
			return nil, fmt.Errorf("list questions: %w", err)
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

const sqlPutQuestion = `INSERT INTO question (tenant, ` + questionColumns + `) VALUES ($1,$2,$3,$4,'open',$5,$6,$7,$8,$9,'',NULL,NULL)`

func putQuestion(ctx context.Context, tx *store.Tx, tenant string, q Question) error {
	err := tx.ExecOne(ctx, sqlPutQuestion, tenant, string(q.Run), q.Path, q.Pass, q.Text, encode(q.Roles), q.FormDigest, nullable(q.AnswerBy), store.Micros(q.AskedAt))
	if err != nil {
		return fmt.Errorf("write question: %w", err)
	}
	return nil
}

const sqlCloseQuestion = `UPDATE question SET status = $1, answer_digest = $2, answered_by = $3, closed_at = $4
	WHERE tenant = $5 AND run = $6 AND path = $7 AND pass = $8 AND status = 'open'`

// closeQuestion ends an open question in its own name.
func closeQuestion(ctx context.Context, tx *store.Tx, tenant string, q *Question) error {
	q.ClosedAt = tx.Now()
	var by any
	if q.AnsweredBy != nil {
		by = encode(q.AnsweredBy)
	}
	err := tx.ExecOne(ctx, sqlCloseQuestion, q.Status, q.AnswerDigest, by, store.Micros(q.ClosedAt), tenant, string(q.Run), q.Path, q.Pass)
	if err != nil {
		return fmt.Errorf("close question %s of run %s: %w", q.Path, q.Run, err)
	}
	return nil
}

// withdrawQuestions closes what a run still asks.
func withdrawQuestions(ctx context.Context, tx *store.Tx, r Run) error {
	open, err := questionsWhere(ctx, tx, "tenant = $1 AND run = $2 AND status = 'open'", r.Tenant, string(r.ID))
	for _, q := range open {
		q.Status = QuestionWithdrawn
		err = errors.Join(err, closeQuestion(ctx, tx, r.Tenant, &q))
	}
	return err
}
