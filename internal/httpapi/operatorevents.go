package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/operation"
)

func (s *Server) operatorEventOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/operator/events", ID: "OperatorController_listEvents", Summary: "List the events of the operators' log",
			Description: "Lists what operators have done in the whole instance, the newest first: operator keys that were created and revoked, tenants that were created, suspended, resumed, deleted and restored, and changes of the webhooks of operators. The events remain after the data of a tenant was removed.",
			Policy:      authz.ReadOperatorEvents,
			Answers:     operation.Answers{{http.StatusOK, "A page of events.", []string{"Link"}}},
			Handler:     operation.JSON(s.listOperatorEvents),
		},
		{
			Method: http.MethodGet, Path: "/operator/events/checkpoint", ID: "OperatorController_getCheckpoint", Summary: "Get a checkpoint of the operators' log",
			Description: "Returns the signed size and root of the Merkle log of the operators, as GET /events/checkpoint does for a tenant.",
			Policy:      authz.ReadOperatorEvents,
			Answers:     operation.Answers{{http.StatusOK, "The checkpoint.", nil}},
			Handler:     operation.JSON(s.getOperatorCheckpoint),
		},
		{
			Method: http.MethodGet, Path: "/operator/events/consistency", ID: "OperatorController_getConsistency", Summary: "Prove that the operators' log has only grown",
			Description: "Returns the proof that the operators' log begins with the events of an earlier checkpoint.",
			Policy:      authz.ReadOperatorEvents,
			Answers:     operation.Answers{{http.StatusOK, "The proof.", nil}},
			Problems:    problems{rolecall.ErrLogShorter},
			Handler:     operation.JSON(s.getOperatorConsistency),
		},
		{
			Method: http.MethodGet, Path: "/operator/events/{id}/proof", ID: "OperatorController_getEventProof", Summary: "Prove that an event is in the operators' log",
			Description: "Returns the proof that the event is in the operators' log, as GET /events/{id}/proof does for a tenant.",
			Policy:      authz.ReadOperatorEvents,
			Answers:     operation.Answers{{http.StatusOK, "The proof.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.getOperatorEventProof),
		},
	}
}

type listOperatorEventsRequest struct {
	eventFilterRequest
	Subject rolecall.AnyID `query:"subject" doc:"Only events about this tenant, operator key or webhook."`
}

func (s *Server) listOperatorEvents(ctx context.Context, c access.Caller, in *listOperatorEventsRequest) (operation.Response[operation.Page[eventBody]], error) {
	page, err := s.directory.OperatorEvents(ctx, c, in.listing(in.Subject))
	return operation.NewPage(&page, newEventBody), err
}

func (s *Server) getOperatorCheckpoint(ctx context.Context, c access.Caller, _ *noRequest) (operation.Response[checkpointBody], error) {
	checkpoint, err := s.directory.OperatorCheckpoint(ctx, c, s.site.Public)
	return operation.Response[checkpointBody]{Body: newCheckpointBody(&checkpoint)}, err
}

func (s *Server) getOperatorEventProof(ctx context.Context, c access.Caller, in *eventProofRequest) (operation.Response[eventProofBody], error) {
	proof, err := s.directory.OperatorEventProof(ctx, c, s.site.Public, in.ID)
	if err != nil {
		return operation.Response[eventProofBody]{}, err
	}
	return operation.Response[eventProofBody]{Body: newEventProofBody(&proof)}, nil
}

func (s *Server) getOperatorConsistency(ctx context.Context, c access.Caller, in *consistencyRequest) (operation.Response[consistencyBody], error) {
	proof, err := s.directory.OperatorConsistency(ctx, c, s.site.Public, int64(in.From))
	return operation.Response[consistencyBody]{Body: newConsistencyBody(int64(in.From), &proof)}, err
}
