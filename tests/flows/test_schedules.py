"""The server's own libraries can create the runs that docker/schedules.sh schedules."""

import asyncio
import re
import shutil
from datetime import UTC, datetime, timedelta

from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL, temporary_settings

from tests.servers import ROOT


async def runs_of(cron: str, count: int) -> list[object]:
    from prefect.server import models  # the server is slow to import, and all processes of a session collect this test
    from prefect.server.database import provide_database_interface
    from prefect.server.schemas.core import Deployment, DeploymentSchedule, Flow
    from prefect.server.schemas.schedules import CronSchedule

    database = provide_database_interface()
    schedule = DeploymentSchedule(schedule=CronSchedule(cron=cron))
    async with database.session_context(begin_transaction=True) as session:
        flow = await models.flows.create_flow(session, Flow(name="bsl-pipeline"))
        deployment = Deployment(name="nli", flow_id=flow.id, schedules=[schedule])
        made = (await models.deployments.create_deployment(session, deployment)).id
    now = datetime.now(UTC)
    async with database.session_context(begin_transaction=True) as session:
        return list(
            await models.deployments.schedule_runs(
                session, made, now, now + timedelta(days=365), min_runs=count, max_runs=count
            )
        )


def test_prefect_server_creates_runs_for_the_deployment_schedule(tmp_path, migrated):
    """With SQLAlchemy 2.1 the scheduler of Prefect 3.9.0 failed in every loop, and only its log showed it."""
    (cron,) = re.findall(r'--cron "(.+?)"', (ROOT / "docker" / "schedules.sh").read_text())
    shutil.copy(migrated, tmp_path / "own.db")
    own = {PREFECT_API_DATABASE_CONNECTION_URL: f"sqlite+aiosqlite:///{tmp_path / 'own.db'}"}
    with temporary_settings(own):
        assert len(asyncio.run(runs_of(cron, count=2))) == 2
