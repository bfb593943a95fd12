package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// postFilter fills in what follows when no node fits: preemption, and the condition's text.
func (p *place) postFilter(
	ctx context.Context, pod *v1.Pod, state fwk.CycleState, diagnosis framework.Diagnosis, result *answer,
) {
	fitError := &framework.FitError{Pod: pod, NumAllNodes: len(p.lister.all), Diagnosis: diagnosis}
	result.Reason = v1.PodReasonUnschedulable
	if p.framework.HasPostFilterPlugins() {
		outcome := &preempting{Candidates: p.candidates(ctx, pod, state, diagnosis.NodeToStatus)}
		found, status := p.framework.RunPostFilterPlugins(ctx, state, pod, diagnosis.NodeToStatus)
		fitError.Diagnosis.PostFilterMsg = status.Message()
		outcome.Verdict = verdictOf(status)
		if status.IsSuccess() && found != nil && found.NominatingInfo != nil {
			outcome.Node = found.NominatedNodeName
			outcome.Victims = outcome.Candidates[outcome.Node].Victims
		}
		result.Preemption = outcome
	}
	result.Message = fitError.Error()
}

// candidates dry-runs preemption on every node where it may help, beyond the first that suffices.
func (p *place) candidates(
	ctx context.Context, pod *v1.Pod, state fwk.CycleState, statuses *framework.NodeToStatus,
) map[string]candidate {
	if p.preemption == nil {
		return nil
	}
	if ok, _ := p.preemption.PodEligibleToPreemptOthers(ctx, pod, statuses.Get(pod.Status.NominatedNodeName)); !ok {
		return nil
	}
	nodes, err := statuses.NodesForStatusCode(p.lister, fwk.Unschedulable)
	if err != nil || len(nodes) == 0 {
		return nil
	}
	var budgets []*policyv1.PodDisruptionBudget
	budgets, err = p.preemption.Evaluator.PdbLister.List(labels.Everything())
	if err != nil {
		return nil
	}
	all := int32(len(nodes))
	// One more than there are: the dry run stops when it has as many as asked for.
	found, _, _ := p.preemption.Evaluator.DryRunPreemption(ctx, state.Clone(), pod, nodes, budgets, 0, all+1)
	candidates := map[string]candidate{}
	for _, one := range found {
		candidates[one.Name()] = candidate{
			Victims: names(one.Victims().Pods), PDBViolations: one.Victims().NumPDBViolations,
		}
	}
	return candidates
}

func names(pods []*v1.Pod) []string {
	found := make([]string, 0, len(pods))
	for _, pod := range pods {
		found = append(found, pod.Namespace+"/"+pod.Name)
	}
	return found
}
