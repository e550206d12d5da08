import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from rolecall import AsyncClient, AsyncPrincipals, DeliveryInvalid, Principal, Problem, WebhookVerifier
from rolecall.fastapi import RolecallMiddleware, require, signed_in

ROLECALL, TENANT = os.environ["SERVICE_URL"], os.environ["TENANT"]
webhooks = WebhookVerifier(os.environ["WEBHOOK_SECRET"])
principals = AsyncPrincipals(ROLECALL, TENANT, feed_token=os.environ["FEED_TOKEN"])

invoices: dict[str, dict[str, Any]] = {
    "1": {"department": "Sales", "approved_by": None},
    "2": {"department": "Engineering", "approved_by": None},
}


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with principals:
        yield


app = FastAPI(lifespan=lifespan)
app.add_middleware(RolecallMiddleware, principals=principals)


@app.exception_handler(Problem)
def show(_: Request, problem: Exception) -> JSONResponse:
    """Answers with an error of Rolecall."""
    assert isinstance(problem, Problem)
    errors = [{"field": e.pointer, "detail": e.detail} for e in problem.errors]
    return JSONResponse({"detail": problem.detail, "code": problem.code, "errors": errors}, problem.status)


class SignIn(BaseModel):
    email: str
    password: str


def browser(request: Request) -> dict[str, str]:
    """Returns the IP address and the name of the browser, for the limits and the list of sessions."""
    address = request.client.host if request.client else ""
    return {"x-forwarded-for": address, "user-agent": request.headers.get("user-agent", "")}


@app.post("/sign-in")
async def sign_in(form: SignIn, request: Request) -> dict[str, str]:
    async with AsyncClient(ROLECALL, TENANT, headers=browser(request)) as client:
        signed = await client.login({"email": form.email, "password": form.password, "transport": "bearer"})
    return {"token": signed.get("token", "")}


@app.get("/invoices")
def list_invoices(caller: Annotated[Principal, Depends(signed_in)]) -> list[dict[str, Any]]:
    return [{"id": id, **invoice} for id, invoice in invoices.items() if caller.can("shop/invoices:read", invoice["department"])]


@app.post("/invoices/{id}/approve")
def approve(id: str, caller: Annotated[Principal, Depends(signed_in)]) -> dict[str, Any]:
    if id not in invoices or not caller.can("shop/invoices:approve", invoices[id]["department"]):
        raise HTTPException(403, "You may not approve this invoice.")
    invoice = invoices[id]
    invoice["approved_by"] = caller.id
    return {"id": id, **invoice}


@app.get("/report")
def report(_: Annotated[Principal, Depends(require("shop/reports:read"))]) -> dict[str, int]:
    return {"approved": sum(invoice["approved_by"] is not None for invoice in invoices.values())}


class Colleague(BaseModel):
    email: str
    name: str


@app.post("/colleagues")
async def invite(form: Colleague, request: Request) -> dict[str, str]:
    """Rolecall decides whether the caller may invite, because the request has the caller's token or cookie."""
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    async with AsyncClient(ROLECALL, TENANT, token=token or None, cookie=request.headers.get("cookie")) as client:
        user = await client.create_user({"email": form.email, "name": form.name, "invite": True})
    return {"id": user["id"]}


@app.post("/webhooks")
async def receive(request: Request) -> dict[str, str]:
    try:
        change = webhooks.verify(request.headers, await request.body())
    except DeliveryInvalid as invalid:
        raise HTTPException(401, "This delivery is not valid.") from invalid
    return {"received": change["type"]}
