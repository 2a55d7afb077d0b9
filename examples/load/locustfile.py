"""Signed-in users read, list and change accounts; ten others sign in once a second each."""

import os
import random

from locust import FastHttpUser, constant_throughput, events, task

PASSWORD = os.environ.get("PASSWORD", "seed password 1")

with open(os.environ.get("TOKENS", "data/tokens.txt"), encoding="ascii") as file:
    # Line N is the token of account N, and empty if that is disabled.
    LINES = enumerate(file.read().splitlines(), start=1)
    USERS = [(f"user{number}@seed.example", token) for number, token in LINES if token]


class SignedInUser(FastHttpUser):
    """Takes another account for each request."""

    def headers(self):
        _, token = random.choice(USERS)
        return {"Authorization": f"Bearer {token}"}

    @task(90)
    def read_account(self):
        self.client.get("/account", headers=self.headers())

    @task(5)
    def list_users(self):
        self.client.get("/users?limit=20", headers=self.headers(), name="/users")

    @task(5)
    def change_name(self):
        first_name = f"Ann {random.randrange(1000)}"
        self.client.put("/account", json={"firstName": first_name}, headers=self.headers())


class SigningInUser(FastHttpUser):
    """Each sign-in takes the service about 10 ms of CPU, so their number is bounded."""

    fixed_count = 10
    wait_time = constant_throughput(1)

    @task
    def sign_in(self):
        email, _ = random.choice(USERS)
        self.client.post("/account/sign-in", json={"email": email, "password": PASSWORD})


@events.quitting.add_listener
def fail_on_errors(environment, **_):
    """Locust alone fails at a single error."""
    total = environment.stats.total
    p99 = total.get_response_time_percentile(0.99) or 0
    environment.process_exit_code = 1 if total.fail_ratio > 0.001 or p99 > 2500 else 0
