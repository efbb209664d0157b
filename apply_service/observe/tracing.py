"""OpenTelemetry traces by option: one span a request, with a child for each stage of its way."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from apply_service.config import SettingValueError
from apply_service.observe.request_record import Attributes, RequestRecord

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

_SERVICE_NAME = "apply-service"
_TRACES_PATH = "/v1/traces"
_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
# A server that ends waits no longer than this for a collector that does not answer.
_EXPORT_TIMEOUT_S = 3.0


class Tracing:
    """Makes spans of requests; a `traceparent` that comes in is their parent."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._tracer = provider.get_tracer(_SERVICE_NAME)
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, scope: Mapping[str, Any]) -> Span:
        """The span of a request that has just come in."""
        from opentelemetry.trace import SpanKind

        carrier = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        return self._tracer.start_span(
            str(scope["method"]),
            context=self._propagator.extract(carrier),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": str(scope["method"])},
        )

    def end(self, span: Span, record: RequestRecord, attributes: Attributes) -> None:
        """End a request's span, with the stages that its record kept as children."""
        from opentelemetry.trace import StatusCode, set_span_in_context

        parent = set_span_in_context(span)
        for stage in record.stages:
            child = self._tracer.start_span(
                stage.name,
                context=parent,
                start_time=stage.start_ns,
                attributes=stage.attributes,
            )
            child.end(stage.end_ns)
        method = attributes["http.request.method"]
        span.update_name(f"{method} {attributes['http.route']}")
        span.set_attributes(attributes)
        status = attributes.get("http.response.status_code", 0)
        if isinstance(status, int) and status >= 500:
            span.set_status(StatusCode.ERROR)
        span.end()

    def close(self) -> None:
        """Send what has not been sent, for a few seconds at most."""
        closer = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        closer.start()
        closer.join(_EXPORT_TIMEOUT_S)


def open_tracing(endpoint: str | None, environment: Mapping[str, str]) -> Tracing | None:
    """Traces to `endpoint`, or to where OpenTelemetry's own variables say; None if nobody asks.

    Raises SettingValueError if they are asked for and the extra `otel` is not installed.
    """
    is_disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if is_disabled or (endpoint is None and not any(map(environment.get, _VARIABLES))):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        wanted = "otlp_endpoint" if endpoint is not None else _VARIABLES[0]
        raise SettingValueError(
            f"{wanted} is set and {error.name} is not installed; install the extra `otel`, or unset"
            " it"
        ) from error
    named = "OTEL_SERVICE_NAME" in environment or (
        f"{SERVICE_NAME}=" in environment.get("OTEL_RESOURCE_ATTRIBUTES", "")
    )
    resource = Resource.create({} if named else {SERVICE_NAME: _SERVICE_NAME})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    url = None if endpoint is None else endpoint.rstrip("/").removesuffix(_TRACES_PATH)
    exporter = OTLPSpanExporter(
        None if url is None else url + _TRACES_PATH,
        timeout=None if "OTEL_EXPORTER_OTLP_TIMEOUT" in environment else _EXPORT_TIMEOUT_S,
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider)
