"""Answers one edit for a command: here, or on the server that the environment names."""

from __future__ import annotations

from collections.abc import Mapping

from apply_service.apply.conclusion import settle_doubt, try_conclude_alone
from apply_service.apply.errors import ChoiceError
from apply_service.apply.planning.edit_plan import plan_edit
from apply_service.config import Settings
from apply_service.http.problems import Problem, RejectedError, answer_of, problem_of
from apply_service.http.schemas import ApplyBody, ApplyResult
from apply_service.http.wire_conversion import edit_of
from apply_service.observe.progress import Progress

URL_VARIABLE = "APPLY_SERVICE_URL"
# Read apart from the settings, because command lines can be seen by others.
KEY_VARIABLE = "APPLY_API_KEY"


def answer_edit(
    body: ApplyBody, settings: Settings, environment: Mapping[str, str], progress: Progress
) -> ApplyResult | Problem:
    """The answer to an edit. Raises what a server's address, a model or the engine raises."""
    # Both ways import much; neither is paid for by the other, nor by `--help`.
    edit = edit_of(
        body,
        default_deadline_s=None,
        default_use_model=settings.use_model,
        auto_use_model=settings.auto_use_model,
        default_on_doubt=settings.on_doubt,
    )
    if url := environment.get(URL_VARIABLE):
        from apply_service.cli.remote import apply_remotely

        progress.show_stage(f"asking {url}")
        api_key = environment.get(KEY_VARIABLE)
        return apply_remotely(url, body, api_key=api_key, show_text=progress.show_text)
    try:
        plan = plan_edit(edit, max_file_bytes=settings.max_file_bytes)
        alone = try_conclude_alone(plan)
        if alone is None and settings.writer_url is not None:
            # It brings an HTTP client, which edits without a writer do not pay for.
            from apply_service.cli.asked import let_write

            progress.show_stage("asking the writer")
            plan, alone = let_write(plan, settings, environment)
            alone = alone or try_conclude_alone(plan)
        if alone is not None:
            outcome = settle_doubt(plan, alone)
            if settings.judge_url is not None:
                from apply_service.cli.asked import hear_judge

                progress.show_stage("asking the judge")
                outcome = hear_judge(plan, outcome, settings, environment)
            return answer_of(body, outcome, model=settings.model, fingerprint=None)
        # A model that is not there is said before torch is imported, which takes seconds.
        from apply_service.models.found_model import find_model

        progress.show_stage(f"looking for the model {settings.model}")
        found = find_model(settings, report=progress.show_stage)
        from apply_service.cli.local import apply_locally

        return apply_locally(settings, body, plan, found=found, progress=progress)
    except RejectedError as error:
        return error.problem
    except ChoiceError as error:
        return problem_of(error)
